package config

import (
	"strings"
	"testing"
)

// parsed reads the smallest file with more lines.
func parsed(t *testing.T, more string) (*File, error) {
	t.Helper()
	return Parse([]byte(small+more), "x.yaml")
}

func TestAccessIsChecked(t *testing.T) {
	for more, want := range map[string]string{
		"access: {anonymous: [rule]}":                                    `access.anonymous[0]`,
		"access: {certificates: [{name: a, roles: [look]}]}":             "needs server.tls.client_ca",
		"access: {jwt: {issuer: x, key_file: y}}":                        "needs issuer and audience",
		"access: {jwt: {issuer: x, audience: y}}":                        "give one of key_file and key_url",
		"access: {jwt: {issuer: x, audience: y, key_url: 'http://a/b'}}": "want https://HOST/PATH",
		"access: {log_every: 0}":                                         "access.log_every",
		"tenants: [{name: a}, {name: a}]":                                "is the name of an earlier tenant",
		"tenants: [{name: a b}]":                                         "tenants[0].name",
		"tenants: [{name: a, weight: 0}]":                                "tenants[0].weight",
		"tenants: [{name: a, burst: 3}]":                                 "has no effect without rate",
		"tenants: [{name: a, rate: -1}]":                                 "tenants[0].rate",
		"server: {tls: {admin: true}}":                                   "server.tls.admin",
	} {
		if _, err := parsed(t, more+"\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", more, err, want)
		}
	}
}

// A file that follows every finding has none left, and each finding names a field that stands in the manual.
func TestProductionFindsWhatIsOpen(t *testing.T) {
	open, err := parsed(t, "server: {model_control: true, reflection: true, public_metrics: true, origins: ['*'], "+
		"shared_memory: /, admin: '0.0.0.0:9', admin_anywhere: true, admin_token: a}\n")
	if err != nil {
		t.Fatal(err)
	}
	var fields []string
	for _, x := range open.Production() {
		fields = append(fields, x.Field)
		if x.Open == "" || x.Write == "" {
			t.Errorf("%+v", x)
		}
	}
	if got := strings.Join(fields, " "); got != "access server.tls server.tls.admin server.model_control "+
		"server.public_metrics server.reflection server.origins server.shared_memory tenants access.audit" {
		t.Errorf("open are %s", got)
	}
	closed, err := parsed(t, `access: {keys: k, audit: a}
tenants: [{name: default, rate: 10}]
server: {tls: {cert: c, key: k}}
`)
	if err != nil {
		t.Fatal(err)
	}
	if got := closed.Production(); got != nil {
		t.Errorf("found %+v", got)
	}
	here, err := parsed(t, "server: {http: '127.0.0.1:8000', grpc: off}\naccess: {keys: k, anonymous: [infer]}\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range here.Production() {
		if x.Field == "server.tls" {
			t.Error("a server of this machine alone needs no encryption")
		}
		if x.Field == "access.anonymous" {
			return
		}
	}
	t.Error("callers who show nothing are not found")
}
