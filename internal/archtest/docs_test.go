package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestArchitectureNamesEveryFloor keeps the page that people read beside the table that counts.
func TestArchitectureNamesEveryFloor(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^ ([0-8])  (.*)$`).FindAllStringSubmatch(string(page), -1)
	drawn, seen := map[string]int{}, map[string]bool{}
	for _, l := range lines {
		seen[l[1]] = true
		for _, word := range strings.Fields(l[2]) {
			drawn[word] = int(l[1][0] - '0')
		}
	}
	if len(seen) != 9 {
		t.Fatalf("found %d floors in ARCHITECTURE.md, want 9", len(seen))
	}
	for _, r := range floors {
		name := strings.TrimSuffix(r.pattern, "/...")
		if floor, ok := drawn[name]; !ok || floor != r.floor {
			t.Errorf("%s stands on floor %d; the floors drawn in ARCHITECTURE.md do not say so", name, r.floor)
		}
	}
}

// TestLinksLead checks that what the project's pages link to within the tree is there.
func TestLinksLead(t *testing.T) {
	root := filepath.Join("..", "..")
	var pages []string
	for _, glob := range []string{"*.md", "docs/*.md", "docs/designs/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, glob))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	if len(pages) < 5 {
		t.Fatalf("found only the pages %v", pages)
	}
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there",
					strings.TrimPrefix(page, root+string(filepath.Separator)), m[1])
			}
		}
	}
}
