package access

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkEntry is what a query of a caller with a key and a tenant costs on its way in and out.
func BenchmarkEntry(b *testing.B) {
	tenants := []Tenant{{Name: "shop", Rate: 1e9, Burst: 1e9, Concurrency: 1e6, MaxTimeout: time.Minute}}
	key, line, err := NewKey("till", "shop", Infer, time.Time{})
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
		b.Fatal(err)
	}
	known, err := Keys(path, TenantNumber(tenants), nil)
	if err != nil {
		b.Fatal(err)
	}
	g := New(Config{Identifiers: []Identifier{known}, Strict: true, Tenants: tenants})
	header := "Bearer " + key
	b.ReportAllocs()
	for b.Loop() {
		shown := Shown{Authorization: header}
		c, err := g.Enter(&shown, Infer)
		if err != nil {
			b.Fatal(err)
		}
		_, leave, err := g.Admit(c)
		if err != nil {
			b.Fatal(err)
		}
		leave()
	}
}
