package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// applier writes objects by server-side apply, and only where something differs.
type applier struct {
	client.Client

	mu   sync.Mutex
	done map[string]applied // by kind, namespace and name
}

// applied is what was written last, and what the server made of it. An object that somebody else has changed since has
// another generation, or version where it has no generation.
type applied struct {
	hash string
	mark string
}

func newApplier(c client.Client) *applier { return &applier{Client: c, done: map[string]applied{}} }

// apply has an object be as it is given; fields that it leaves out are left to others. It reports whether it wrote.
// present is an empty object of the same kind.
func (a *applier) apply(ctx context.Context, want, present client.Object) (wrote bool, err error) {
	u, err := a.fields(want)
	if err != nil {
		return false, err
	}
	text, err := json.Marshal(u.Object)
	if err != nil {
		return false, err
	}
	sum := sha256.Sum256(text)
	hash := hex.EncodeToString(sum[:])
	key := fmt.Sprintf("%s %s/%s", u.GroupVersionKind(), want.GetNamespace(), want.GetName())
	err = a.Get(ctx, client.ObjectKeyFromObject(want), present)
	switch {
	case err != nil && !errors.IsNotFound(err):
		return false, err
	case err == nil:
		a.mu.Lock()
		same := a.done[key] == applied{hash, mark(present)}
		a.mu.Unlock()
		if same {
			return false, nil
		}
	}
	if err := a.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(Manager),
		client.ForceOwnership); err != nil {
		return false, fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
	}
	a.mu.Lock()
	a.done[key] = applied{hash, mark(u)}
	a.mu.Unlock()
	return true, nil
}

// mark changes when somebody changes what apply has written.
func mark(o client.Object) string {
	if g := o.GetGeneration(); g > 0 {
		return fmt.Sprintf("%s generation %d", o.GetUID(), g)
	}
	return fmt.Sprintf("%s version %s", o.GetUID(), o.GetResourceVersion())
}

// fields returns the fields of an object that are not empty.
func (a *applier) fields(o client.Object) (*unstructured.Unstructured, error) {
	kind, err := apiutil.GVKForObject(o, a.Scheme())
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	prune(content)
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// prune removes nulls and empty mappings, which would claim fields for us.
func prune(m map[string]any) {
	for k, v := range m {
		switch x := v.(type) {
		case nil:
			delete(m, k)
		case map[string]any:
			// An empty volume source or selector means something; only metadata and strategy leave empty ones behind.
			if prune(x); len(x) == 0 && (k == "strategy" || k == "metadata" || k == "resources") {
				delete(m, k)
			}
		case []any:
			for _, e := range x {
				if inner, ok := e.(map[string]any); ok {
					prune(inner)
				}
			}
		}
	}
}

// applyStatus writes the operator's fields of a status. status has only them.
func (a *applier) applyStatus(ctx context.Context, o client.Object, status map[string]any) error {
	return a.applyStatusAs(ctx, Manager, o, status)
}

// applyStatusAs is applyStatus for the fields of one of the operator's parts.
func (a *applier) applyStatusAs(ctx context.Context, owner string, o client.Object, status map[string]any) error {
	kind, err := apiutil.GVKForObject(o, a.Scheme())
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(o.GetNamespace())
	u.SetName(o.GetName())
	err = a.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(owner),
		client.ForceOwnership)
	return client.IgnoreNotFound(err) // it was deleted meanwhile
}

// remove deletes an object; one that is gone already is no error.
func (a *applier) remove(ctx context.Context, o client.Object) error {
	return client.IgnoreNotFound(a.Delete(ctx, o))
}
