package render

import (
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/config"
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
	f.Spec.TLS = &v1alpha1.FleetTLS{Secret: "front", ClientCA: &v1alpha1.Authorities{ConfigMap: "ca"},
		ClientOptional: true}
	f.Spec.Access.Certificates = []v1alpha1.FleetCertificate{{Name: "till", Tenant: "shop",
		Roles: []v1alpha1.Role{"infer"}}}
	f.Spec.Access.JWT = &v1alpha1.FleetJWT{Issuer: "https://id.example", Audience: "sluice", KeySet: "keys",
		TenantClaim: "tenant"}
	file := &config.File{Version: 1, Access: r.access(), Tenants: r.tenants()}
	file.Server.TLS = r.tls()
	text, err := file.YAML()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/etc/sluice/access/keys", "look", "shop", "200",
		"/etc/sluice/tls/tls.crt", "/etc/sluice/tls/tls.key", "/etc/sluice/client-ca/ca.crt", "client_optional: true",
		"name: till", "https://id.example", "/etc/sluice/tokens/jwks.json"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the configuration lacks %q:\n%s", want, text)
		}
	}
	err = check(text)
	if err == nil || strings.Contains(err.Error(), "access") || strings.Contains(err.Error(), "tls") {
		t.Errorf("without apps and machines the configuration's only mistakes are theirs: %v", err)
	}
	if got := r.tenants(); got[0].Weight != 3 || got[0].Concurrency != 8 || got[1].Weight != 0 { // its default
		t.Errorf("tenants are %+v", got)
	}
}
