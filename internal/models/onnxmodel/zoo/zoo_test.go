package zoo

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// TestNetworks checks that every network is a graph that can be read, has weights, and is the same every time.
func TestNetworks(t *testing.T) {
	names := map[string]bool{}
	for _, n := range Networks() {
		if names[n.Name] || n.Doc == "" {
			t.Errorf("network %q is listed twice or says nothing of itself", n.Name)
		}
		names[n.Name] = true
		g := n.Build()
		if err := g.Check(); err != nil {
			t.Errorf("%s: %v", n.Name, err)
		}
		if g.Parameters() < 10000 {
			t.Errorf("%s has %d weights", n.Name, g.Parameters())
		}
		again := n.Build().Model(onnxmodel.DefaultOpset, onnxmodel.DefaultIR)
		if !proto.Equal(g.Model(onnxmodel.DefaultOpset, onnxmodel.DefaultIR), again) {
			t.Errorf("%s differs when it is built again", n.Name)
		}
	}
	if len(names) < 8 {
		t.Errorf("%d networks", len(names))
	}
}
