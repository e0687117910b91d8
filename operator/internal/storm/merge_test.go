package storm

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
)

// merger does server-side apply, by the definitions of resources: which lists are merged by which key is said there.
type merger struct {
	scheme        *runtime.Scheme
	builtIn, ours managedfields.TypeConverter
}

func newMerger(scheme *runtime.Scheme) *merger {
	ours, err := definitions()
	must(err)
	return &merger{scheme: scheme, builtIn: applyconfigurations.NewTypeConverter(scheme), ours: ours}
}

// definitions reads the lists and keys of our own resources.
func definitions() (managedfields.TypeConverter, error) {
	dir := filepath.Join(cluster.Root(), "operator", "deploy", "chart", "crds")
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	schemas := make(map[string]*spec.Schema)
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		var d apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &d); err != nil {
			return nil, err
		}
		for _, v := range d.Spec.Versions {
			text, err := json.Marshal(v.Schema.OpenAPIV3Schema)
			if err != nil {
				return nil, err
			}
			s := &spec.Schema{}
			if err := json.Unmarshal(text, s); err != nil {
				return nil, err
			}
			s.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{
				"group": d.Spec.Group, "version": v.Name, "kind": d.Spec.Names.Kind}})
			meta := s.Properties["metadata"]
			meta.AddExtension("x-kubernetes-preserve-unknown-fields", true)
			s.Properties["metadata"] = meta
			schemas[strings.Join([]string{d.Spec.Group, v.Name, d.Spec.Names.Kind}, ".")] = s
		}
	}
	if len(schemas) == 0 {
		return nil, fmt.Errorf("%s has no definitions", dir)
	}
	return managedfields.NewTypeConverter(schemas, false)
}

// apply returns an object with what a manager applies. before is nil for none.
func (m *merger) apply(c call, before client.Object, body []byte, manager string) (client.Object, error) {
	types := m.builtIn
	if c.of.gvk.Group == v1alpha1.GroupVersion.Group {
		types = m.ours
	}
	of, err := managedfields.NewDefaultFieldManager(types, m.scheme, m.scheme, m.scheme, c.of.gvk,
		c.of.gvk.GroupVersion(), c.subresource, nil)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(body, &u.Object); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	live := runtime.Object(nil)
	if before != nil {
		live = before.DeepCopyObject()
	} else {
		x, err := m.scheme.New(c.of.gvk)
		if err != nil {
			return nil, err
		}
		o := x.(client.Object)
		o.SetName(c.key.Name)
		o.SetNamespace(c.key.Namespace)
		live = o
	}
	live.GetObjectKind().SetGroupVersionKind(c.of.gvk)
	out, err := of.Apply(live, u, manager, true)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("applying %s %s: %v", c.of.gvk.Kind, c.key, err))
	}
	o := out.(client.Object)
	o.GetObjectKind().SetGroupVersionKind(c.of.gvk)
	return o, nil
}
