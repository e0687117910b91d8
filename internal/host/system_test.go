package host

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/sluice-serving/sluice/internal/config"
)

// The systems of all examples, and of the pages of the manual, are ones that the program takes as they stand.
func TestSystemsOfExamplesAndPages(t *testing.T) {
	var files, pages []string
	for _, glob := range []string{"../../examples/*.yaml", "../../examples/*/*.yaml"} {
		found, err := filepath.Glob(glob)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	for _, path := range files {
		f, err := config.Load(path)
		if err == nil {
			err = f.CheckNames(names())
		}
		if err != nil {
			t.Error(err)
		}
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	system := regexp.MustCompile(`(?m)^system: \{.*\}`)
	for _, path := range append(pages, "../../README.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range system.FindAllString(string(text), -1) {
			shown++
			small, err := os.ReadFile("../../examples/minimal.yaml")
			if err != nil {
				t.Fatal(err)
			}
			f, err := config.Parse(append(small, "\n"+line+"\n"...), path)
			if err == nil {
				err = f.CheckNames(names())
			}
			if err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
	if len(files) < 7 || shown < 2 {
		t.Errorf("found only %d examples, and %d systems in pages", len(files), shown)
	}
}
