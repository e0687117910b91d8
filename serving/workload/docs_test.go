package workload

import (
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The workload in the documentation is valid and has no unknown field.
func TestDocumentedWorkload(t *testing.T) {
	page, err := os.ReadFile("../../docs/workload.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	text, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the page shows no workload")
	}
	var s Spec
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&s); err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	if len(s.Apps) != 1 || len(s.Apps[0].Rates) != 3 || s.Apps[0].Shape != 0.05 {
		t.Errorf("the page's workload reads as %+v", s)
	}
}

// The items below it are valid, too.
func TestDocumentedItems(t *testing.T) {
	page, err := os.ReadFile("../../docs/workload.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\nitems:\n")
	text, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the page shows no items")
	}
	var s AppSpec
	d := yaml.NewDecoder(strings.NewReader("items:\n" + text))
	d.KnownFields(true)
	if err := d.Decode(&s); err != nil {
		t.Fatal(err)
	}
	sizes, err := s.Items.Build()
	if err != nil {
		t.Fatal(err)
	}
	if m := sizes.Mix(); len(s.Items.Parts) != 2 || m.Sizes[0] != 10 || m.Largest()%10 != 0 {
		t.Errorf("the page's items read as %+v", s.Items)
	}
}
