package compliance_test

import (
	"fmt"
	"testing"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/schema"
)

func BenchmarkEvaluate(b *testing.B) {
	shapes := map[string]func(i int, s *compliance.Subscriber){
		"Compliant": func(int, *compliance.Subscriber) {},
		"Owned": func(_ int, s *compliance.Subscriber) {
			o := kustomization("root")
			s.Owner = &o
		},
		"Later": func(_ int, s *compliance.Subscriber) {
			source("c3", "c3", run("c1", 1), run("c2", 10), run("c3", 20))(s)
		},
		"NotFetched": func(_ int, s *compliance.Subscriber) { source("c1", "c1", run("c1", 1))(s) },
		"OneHub": func(i int, s *compliance.Subscriber) {
			s.Ref.Name, s.DestinationName = fmt.Sprint("app-", i*7919%100003), "hub"
			says(schema.StatusFailure, "SyncError")(s)
			source("c1", "c2")(s)
		},
	}
	for name, shape := range shapes {
		for _, size := range []int{1000, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				var all []compliance.Subscriber
				for i := range size {
					s := compliantOn(fmt.Sprintf("drone-%05d", i*7919%100003))
					shape(i, &s)
					all = append(all, s)
				}
				in := ask(all...)
				in.Policy.MinSuccessTime = minutes(30)
				b.ReportAllocs()
				for b.Loop() {
					compliance.Evaluate(in)
				}
			})
		}
	}
}
