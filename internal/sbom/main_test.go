package main

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
)

// The bill of this test's own binary names what go.mod and the lock file name, and is the same every time.
func TestBill(t *testing.T) {
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	for _, to := range []*bytes.Buffer{&first, &second} {
		if err := write(to, own, "../../package-lock.json", "1.2.3"); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two bills of one binary differ")
	}
	var b bill
	if err := json.Unmarshal(first.Bytes(), &b); err != nil {
		t.Fatal(err)
	}
	if b.Metadata.Component.Version != "1.2.3" {
		t.Errorf("%+v", b.Metadata)
	}
	found := map[string]component{}
	for _, c := range b.Components {
		if c.Version == "" || c.PURL == "" {
			t.Errorf("%+v", c)
		}
		found[c.Name] = c
	}
	if _, ok := found["std"]; !ok || len(found["highs"].Hashes) != 1 || b.Format != "CycloneDX" {
		t.Errorf("%s", first.Bytes())
	}
}
