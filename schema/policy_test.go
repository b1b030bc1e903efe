package schema_test

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"testing/quick"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/schema"
)

var policyParts = cmp.AllowUnexported(schema.Percent{}, schema.ZeroTargets{})

func TestDefaultPolicy(t *testing.T) {
	got, err := json.Marshal(schema.DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"min_compliant":"100%","max_failures":0,"mandatory":"","zero_targets":"deny","unknown":"block","suspended":"exclude","children":"require","min_success_time":"0s","progress_deadline":"10m"}`
	if string(got) != want {
		t.Errorf("the documents promise\n%s\ngot\n%s", want, got)
	}
	var back schema.Policy
	if err := json.Unmarshal(got, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(schema.DefaultPolicy(), back, policyParts); diff != "" {
		t.Errorf("written and read again: %s", diff)
	}
}

func TestPolicySet(t *testing.T) {
	cases := map[string]struct {
		good map[string]string // as written → as the policy's JSON shows it
		bad  []string
	}{
		"min_compliant": {
			good: map[string]string{"95%": `"95%"`, "95": `"95%"`, "99.5%": `"99.5%"`, "0": `"0%"`, "100.0000": `"100%"`, "099%": `"99%"`, "0.0001%": `"0.0001%"`, " 50% ": `"50%"`},
			bad:  []string{"", "%", "101%", "100.1%", "-1", "+1", "1e2", "99.55555", ".5", "half", "95%%", "9 5", "1000", "NaN", "0x1"},
		},
		"max_failures":      {good: map[string]string{"0": "0", "3": "3", "1000000000": "1000000000"}, bad: []string{"", "-1", "1.5", "many", "1000000001", "99999999999999999999"}},
		"mandatory":         {good: map[string]string{"": `""`, "tier=canary": `"tier=canary"`}},
		"zero_targets":      {good: map[string]string{"deny": `"deny"`, "allow": `"allow"`, "require:1": `"deny"`, "require:5": `"require:5"`}, bad: []string{"", "require", "require:", "require:0", "require:-1", "require:x", "require:1000000001", "Deny"}},
		"unknown":           {good: map[string]string{"block": `"block"`, "exclude": `"exclude"`}, bad: []string{"", "ignore", "Block"}},
		"suspended":         {good: map[string]string{"block": `"block"`, "exclude": `"exclude"`}, bad: []string{"", "require"}},
		"children":          {good: map[string]string{"require": `"require"`, "ignore": `"ignore"`}, bad: []string{"", "block", "Require"}},
		"min_success_time":  {good: map[string]string{"0s": `"0s"`, "30s": `"30s"`, "90m": `"1h30m"`, "0": `"0s"`}, bad: []string{"", "-1s", "30", "9000h", "soon"}},
		"progress_deadline": {good: map[string]string{"1ms": `"1ms"`, "10m": `"10m"`, "8760h": `"8760h"`}, bad: []string{"", "0s", "-1s", "8761h", "1us", "10"}},
	}
	if len(cases) != len(schema.PolicyFields()) {
		t.Fatalf("%d fields are tested of %d", len(cases), len(schema.PolicyFields()))
	}
	for _, field := range schema.PolicyFields() {
		c, ok := cases[field]
		if !ok {
			t.Fatalf("%s is not tested", field)
		}
		for in, want := range c.good {
			p := schema.DefaultPolicy()
			if err := p.Set(field, in); err != nil {
				t.Errorf("%s=%q: %v", field, in, err)
				continue
			}
			b, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			var members map[string]json.RawMessage
			if err := json.Unmarshal(b, &members); err != nil {
				t.Fatal(err)
			}
			if string(members[field]) != want {
				t.Errorf("%s=%q: want %s, got %s", field, in, want, members[field])
			}
			// Nothing else moved.
			rest := schema.DefaultPolicy()
			if err := rest.Set(field, strings.Trim(string(members[field]), `"`)); err != nil {
				t.Errorf("%s: what is shown cannot be set: %v", field, err)
			}
			if diff := cmp.Diff(rest, p, policyParts); diff != "" {
				t.Errorf("%s=%q: %s", field, in, diff)
			}
		}
		for _, in := range c.bad {
			p := schema.DefaultPolicy()
			err := p.Set(field, in)
			if err == nil {
				t.Errorf("%s=%q must be refused, got %+v", field, in, p)
				continue
			}
			if diff := cmp.Diff(schema.DefaultPolicy(), p, policyParts); diff != "" {
				t.Errorf("%s=%q was refused and changed something: %s", field, in, diff)
			}
		}
	}
}

func TestPolicySetUnknownField(t *testing.T) {
	p := schema.DefaultPolicy()
	if err := p.Set("min-compliant", "5%"); err == nil || !strings.Contains(err.Error(), "min_compliant") {
		t.Errorf("the error must name the fields there are: %v", err)
	}
}

// TestPercentOf holds the share against exact fractions.
func TestPercentOf(t *testing.T) {
	for _, c := range []struct {
		percent string
		n, want int
	}{{"100%", 7, 7}, {"0%", 7, 0}, {"50%", 7, 4}, {"95%", 20, 19}, {"95%", 21, 20}, {"99.9%", 1000, 999}, {"99.9%", 1001, 1000}, {"33.3333%", 3, 1}, {"0.0001%", 1, 1}, {"1%", 0, 0}, {"55%", 100, 55}, {"7%", 100, 7}} {
		p, err := schema.ParsePercent(c.percent)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Of(c.n); got != c.want {
			t.Errorf("%s of %d: want %d, got %d", c.percent, c.n, c.want, got)
		}
	}
	property := func(share uint32, n uint32) bool {
		parts := int64(share) % 1_000_001 // ten-thousandths of a percent
		text := big.NewRat(parts, 10_000).FloatString(4) + "%"
		p, err := schema.ParsePercent(text)
		if err != nil {
			return false
		}
		got := big.NewRat(int64(p.Of(int(n))), 1)
		exact := new(big.Rat).Mul(big.NewRat(parts, 1_000_000), big.NewRat(int64(n), 1))
		below := new(big.Rat).Sub(got, big.NewRat(1, 1))
		again, err := schema.ParsePercent(p.String())
		return got.Cmp(exact) >= 0 && below.Cmp(exact) < 0 && err == nil && again == p
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 20_000}); err != nil {
		t.Error(err)
	}
}

func TestZeroTargets(t *testing.T) {
	for in, least := range map[string]int{"deny": 1, "allow": 0, "require:7": 7} {
		z, err := schema.ParseZeroTargets(in)
		if err != nil || z.Least() != least || z.String() != in {
			t.Errorf("%s: got %d, %s, %v", in, z.Least(), z, err)
		}
	}
}

func TestDuration(t *testing.T) {
	for in, want := range map[string]string{"0s": "0s", "30s": "30s", "10m": "10m", "10m0s": "10m", "1h": "1h", "60m": "1h", "1h30m": "1h30m", "1h0m30s": "1h0m30s", "100h": "100h", "1.5s": "1.5s", "10h10m10s": "10h10m10s", "-10m": "-10m", "372s": "6m12s"} {
		var d schema.Duration
		if err := json.Unmarshal([]byte(`"`+in+`"`), &d); err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if b, err := json.Marshal(d); err != nil || string(b) != `"`+want+`"` {
			t.Errorf("%s: want %s, got %s, %v", in, want, b, err)
		}
		var text schema.Duration
		if err := text.UnmarshalText([]byte(in)); err != nil || text != d {
			t.Errorf("%s as text: got %s, %v", in, text, err)
		}
	}
	for _, in := range []string{`30`, `""`, `"30"`, `"soon"`, `{}`, `["30s"]`} {
		var d schema.Duration
		if err := json.Unmarshal([]byte(in), &d); err == nil || d != 0 {
			t.Errorf("%s must be refused, got %s", in, d)
		}
	}
	property := func(n int64) bool {
		var back schema.Duration
		b, err := json.Marshal(schema.Duration(n))
		return err == nil && json.Unmarshal(b, &back) == nil && back == schema.Duration(n)
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 5000}); err != nil {
		t.Error(err)
	}
	if schema.Duration(90*time.Second).String() != "1m30s" {
		t.Error("1m30s keeps its seconds")
	}
}
