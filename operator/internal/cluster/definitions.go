package cluster

import (
	"context"
	"fmt"
	"io/fs"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/sluice-serving/sluice/operator/config/crd"
)

// InstallDefinitions defines sluice's resources and waits until the API server serves them.
func (c *Cluster) InstallDefinitions(ctx context.Context) error {
	names, err := fs.Glob(crd.Files, "*.yaml")
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := crd.Files.ReadFile(name)
		if err != nil {
			return err
		}
		if err := c.Define(ctx, text); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// Define defines a resource by its CustomResourceDefinition, YAML, and waits until the API server serves it.
func (c *Cluster) Define(ctx context.Context, text []byte) error {
	var d apiextensions.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &d); err != nil {
		return err
	}
	if err := c.Client.Create(ctx, &d); err != nil && !errors.IsAlreadyExists(err) {
		return err
	}
	return c.await(ctx, c.apiserver, func() error {
		var now apiextensions.CustomResourceDefinition
		if err := c.Client.Get(ctx, client.ObjectKey{Name: d.Name}, &now); err != nil {
			return err
		}
		for _, x := range now.Status.Conditions {
			if x.Type == apiextensions.Established && x.Status == apiextensions.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("%s is not established", d.Name)
	})
}
