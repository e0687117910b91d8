package render

import (
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/config"
	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
)

// A fleet's keys and tenants are those of each cell's configuration; without them everybody may call.
func TestAccess(t *testing.T) {
	f := &v1alpha1.Fleet{}
	r := &rendering{in: &Input{Fleet: f}}
	if a := r.access(); a.Identifies() || len(r.tenants()) > 0 {
		t.Errorf("without keys: %+v", a)
	}
	f.Spec.Access = &v1alpha1.FleetAccess{Keys: "callers", Anonymous: []v1alpha1.AnonymousRole{"look"}}
	f.Spec.Tenants = []v1alpha1.Tenant{{Name: "shop", Weight: 3, Rate: 200, Concurrency: 8}, {Name: "default"}}
	file := &config.File{Version: 1, Access: r.access(), Tenants: r.tenants()}
	text, err := file.YAML()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/etc/sluice/access/keys", "look", "shop", "200"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the configuration lacks %q:\n%s", want, text)
		}
	}
	if got := r.tenants(); got[0].Weight != 3 || got[0].Concurrency != 8 || got[1].Weight != 1 {
		t.Errorf("tenants are %+v", got)
	}
}
