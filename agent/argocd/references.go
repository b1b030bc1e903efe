package argocd

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landfall-hub/landfall/agent/object"
	"github.com/landfall-hub/landfall/schema"
)

// InClusterName and inClusterServer are how Argo CD names the cluster that it
// runs on.
const (
	InClusterName   = "in-cluster"
	inClusterServer = "https://kubernetes.default.svc"
)

// Destination is the cluster that an Application deploys to, as it was written:
// by the address of its API server, by the name that Argo CD has for it, or
// both. Which registered cluster that is, is the caller's configuration.
type Destination struct {
	Server string
	Name   string
}

// ReadDestination returns an Application's destination.
func ReadDestination(obj *unstructured.Unstructured) Destination {
	d := object.Read(obj).Object("spec", "destination")
	return Destination{Server: schema.StripUserInfo(d.Text("server")), Name: d.Text("name")}
}

// Local reports whether the destination is the cluster that Argo CD runs on.
func (d Destination) Local() bool {
	if d.Name != "" {
		return d.Name == InClusterName
	}
	return strings.TrimSuffix(strings.TrimRight(d.Server, "/"), ":443") == inClusterServer
}

// sameDestination compares what a specification asks for with what was
// compared. Argo CD may have looked up the server of a named cluster.
func sameDestination(want, had object.Fields) bool {
	if name := want.Text("name"); name != had.Text("name") {
		return false
	}
	if server := want.Text("server"); server != had.Text("server") && (server != "" || want.Text("name") == "") {
		return false
	}
	return want.Text("namespace") == had.Text("namespace")
}

// Tracking is how Argo CD marks what it applied on a cluster, as it is
// configured there.
type Tracking struct {
	// Namespace is where Argo CD itself lives: an application that is named
	// without a namespace is there. Applications say it themselves.
	Namespace string
	// Label is the label (application.instanceLabelKey) that holds the name of
	// the application where there is no tracking id. Empty: not looked at.
	Label string
}

// trackingID is the annotation app:group/kind:namespace/name.
const trackingID = "argocd.argoproj.io/tracking-id"

// Owner returns the Application that applied an object, or nil. A tracking id
// that was copied from another object counts for nothing.
func (t Tracking) Owner(obj *unstructured.Unstructured) *schema.ObjectRef {
	return t.owner(object.Read(obj))
}

func (t Tracking) owner(f object.Fields) *schema.ObjectRef {
	meta := f.Object("metadata")
	self := schema.ObjectRef{Kind: f.Text("kind"), Namespace: meta.Text("namespace"), Name: meta.Text("name")}
	app := meta.Object("labels").Text(t.Label)
	if id := meta.Object("annotations").Text(trackingID); id != "" {
		name, of, _ := strings.Cut(id, ":")
		if of != groupOf(f.Text("apiVersion"))+"/"+self.Kind+":"+self.Namespace+"/"+self.Name {
			return nil
		}
		app = name
	}
	owner := schema.ObjectRef{Kind: KindApplication, Namespace: t.Namespace, Name: app}
	if namespace, name, ok := strings.Cut(app, "_"); ok {
		owner.Namespace, owner.Name = namespace, name
	} else if self.Kind == KindApplication {
		owner.Namespace = cmp.Or(f.Object("status").Text("controllerNamespace"), t.Namespace, self.Namespace)
	}
	if owner.Name == "" || owner.Namespace == "" || owner == self {
		return nil
	}
	return &owner
}

func groupOf(apiVersion string) string {
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok {
		return "" // the core group
	}
	return group
}

// Inventory returns the reconcilers among what an Application deploys, in order
// and without itself. One that deploys to another cluster has none here. Where
// the list cannot be read, neither can the object: its status is unknown.
func Inventory(obj *unstructured.Unstructured) []schema.ObjectRef {
	f := object.Read(obj)
	meta := f.Object("metadata")
	self := schema.ObjectRef{Kind: f.Text("kind"), Namespace: meta.Text("namespace"), Name: meta.Text("name")}
	return inventory(self, f.Object("spec", "destination"), f.Object("status"))
}

func inventory(self schema.ObjectRef, destination, status object.Fields) []schema.ObjectRef {
	var found []schema.ObjectRef
	for _, r := range status.List("resources") {
		ref := schema.ObjectRef{Kind: r.Text("kind"), Namespace: r.Text("namespace"), Name: r.Text("name")}
		if object.IsReconciler(r.Text("group"), ref.Kind) {
			found = append(found, ref)
		}
	}
	if !(Destination{Server: destination.Text("server"), Name: destination.Text("name")}).Local() {
		return nil
	}
	return object.Children(self, found)
}
