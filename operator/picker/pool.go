package picker

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
)

// fieldManager owns what this package writes.
const fieldManager = "sluice-picker"

// Pools are the InferencePools of a fleet: FLEET for HTTP and FLEET-grpc for gRPC, since a pool speaks one protocol.
// They select all pods of the fleet, workers and dispatchers.
func Pools(namespace, fleet, service string, port int, failOpen bool) []*unstructured.Unstructured {
	mode := "FailClose"
	if failOpen {
		mode = "FailOpen"
	}
	pool := func(name, protocol string, target int) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "inference.networking.k8s.io/v1", "kind": "InferencePool",
			"metadata": map[string]any{"name": name, "namespace": namespace,
				"labels": map[string]any{v1alpha1.LabelFleet: fleet}},
			"spec": map[string]any{
				"selector":    map[string]any{"matchLabels": map[string]any{v1alpha1.LabelFleet: fleet}},
				"targetPorts": []any{map[string]any{"number": int64(target)}},
				"appProtocol": protocol,
				"endpointPickerRef": map[string]any{"name": service, "port": map[string]any{"number": int64(port)},
					"failureMode": mode},
			},
		}}
	}
	return []*unstructured.Unstructured{
		pool(fleet, "http", PortHTTP),
		pool(fleet+"-grpc", "kubernetes.io/h2c", PortGRPC),
	}
}

// Publish writes pools, or changes those that are there to be so.
func Publish(ctx context.Context, c client.Client, pools []*unstructured.Unstructured) error {
	for _, p := range pools {
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(p), client.FieldOwner(fieldManager),
			client.ForceOwnership); err != nil {
			return fmt.Errorf("InferencePool %s: %w; its definition comes with the Gateway API inference extension",
				p.GetName(), err)
		}
	}
	return nil
}
