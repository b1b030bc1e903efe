//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

var (
	getOptions   = metav1.GetOptions{}
	applyOptions = metav1.ApplyOptions{FieldManager: "e2e", Force: true}
	patchOptions = metav1.PatchOptions{FieldManager: "e2e"}

	namespaces     = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	configMaps     = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	crds           = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	deployments    = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	roleBindings   = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
	kustomizations = schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}
	gitRepos       = schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"}
	applications   = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}
)

// readObjects returns the objects of YAML documents.
func readObjects(text []byte) ([]*unstructured.Unstructured, error) {
	var list []*unstructured.Unstructured
	d := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		obj := &unstructured.Unstructured{}
		err := d.Decode(&obj.Object)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		if len(obj.Object) > 0 {
			list = append(list, obj)
		}
	}
}

// fill fills a template of testdata, in which [[ .Name ]] stands for a value.
func fill(text string, values any) (string, error) {
	t, err := template.New("").Delims("[[", "]]").Option("missingkey=error").Parse(text)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = t.Execute(&out, values)
	return out.String(), err
}

// apply makes objects what they are here, as kubectl apply --server-side does.
func (c *cluster) apply(ctx context.Context, objects ...*unstructured.Unstructured) error {
	for _, obj := range objects {
		resource, err := c.resource(obj)
		if err != nil {
			return fmt.Errorf("applying %s %s/%s: %w", obj.GetKind(), obj.GetNamespace(), obj.GetName(), err)
		}
		if _, err := resource.Apply(ctx, obj.GetName(), obj, applyOptions); err != nil {
			return fmt.Errorf("applying %s %s/%s: %w", obj.GetKind(), obj.GetNamespace(), obj.GetName(), err)
		}
	}
	return nil
}

// applyText is apply with YAML documents.
func (c *cluster) applyText(ctx context.Context, text string) error {
	objects, err := readObjects([]byte(text))
	if err != nil {
		return err
	}
	return c.apply(ctx, objects...)
}

// resource finds where an object of this kind lives.
func (c *cluster) resource(obj *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := obj.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		c.mapper.Reset()
		mapping, err = c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return c.client.Resource(mapping.Resource), nil
	}
	return c.client.Resource(mapping.Resource).Namespace(obj.GetNamespace()), nil
}

// applyCRDs applies the files and waits until their kinds are served.
func (c *cluster) applyCRDs(ctx context.Context, files ...string) error {
	var names []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		objects, err := readObjects(text)
		if err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() != "CustomResourceDefinition" })
		for _, o := range objects {
			names = append(names, o.GetName())
		}
		if err := c.apply(ctx, objects...); err != nil {
			return err
		}
	}
	return await("the custom resources are served", func() error {
		for _, name := range names {
			crd, err := c.client.Resource(crds).Get(ctx, name, getOptions)
			if err != nil {
				return err
			}
			if status, _ := condition(crd, "Established"); status != "True" {
				return fmt.Errorf("%s is not established", name)
			}
		}
		return nil
	}, c.apiserver)
}

// condition returns status and reason of an object's condition.
func condition(obj *unstructured.Unstructured, name string) (status, reason string) {
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, entry := range list {
		if m, ok := entry.(map[string]any); ok && m["type"] == name {
			status, _ = m["status"].(string)
			reason, _ = m["reason"].(string)
			return status, reason
		}
	}
	return "", ""
}

// text returns a field of an object, empty where there is none.
func text(obj *unstructured.Unstructured, fields ...string) string {
	value, _, _ := unstructured.NestedString(obj.Object, fields...)
	return value
}

// patch changes an object by a JSON merge patch, its status with "status".
func (c *cluster) patch(ctx context.Context, where schema.GroupVersionResource, namespace, name string, change any, subresources ...string) error {
	body, err := json.Marshal(change)
	if err != nil {
		return err
	}
	var resource dynamic.ResourceInterface = c.client.Resource(where)
	if namespace != "" {
		resource = c.client.Resource(where).Namespace(namespace)
	}
	if _, err := resource.Patch(ctx, name, types.MergePatchType, body, patchOptions, subresources...); err != nil {
		return fmt.Errorf("patching %s %s/%s: %w", where.Resource, namespace, name, err)
	}
	return nil
}

// delete removes an object; one that is gone already is no error.
func (c *cluster) delete(ctx context.Context, where schema.GroupVersionResource, namespace, name string) error {
	err := c.client.Resource(where).Namespace(namespace).Delete(ctx, name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// waitFor looks at an object until it is so; what says what is missing.
func (c *cluster) waitFor(t testing.TB, where schema.GroupVersionResource, namespace, name string, missing func(*unstructured.Unstructured) string) *unstructured.Unstructured {
	t.Helper()
	var last *unstructured.Unstructured
	eventually(t, fmt.Sprintf("%s %s/%s is as it should be", where.Resource, namespace, name), func() error {
		obj, err := c.client.Resource(where).Namespace(namespace).Get(t.Context(), name, getOptions)
		if err != nil {
			return err
		}
		last = obj
		if what := missing(obj); what != "" {
			return errors.New(what)
		}
		return nil
	})
	return last
}

// testdata reads a file below testdata.
func testdata(t testing.TB, elements ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"testdata"}, elements...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
