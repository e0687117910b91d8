package systems

import (
	"strings"
	"testing"
)

// Every system and component has a page with a full sentence, and the page of a system has the values that it sets.
func TestPages(t *testing.T) {
	names := Names()
	for _, k := range Kinds() {
		for _, p := range Components(k) {
			names = append(names, p.Name)
			if p.Doc == "" || p.Source == "" || strings.HasSuffix(p.Doc, ".") {
				t.Errorf("the %v does not say what it does and where it comes from: %q, %q", p, p.Doc, p.Source)
			}
		}
	}
	for _, name := range names {
		pages, err := Pages(name)
		if err != nil || len(pages) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	pages, err := Pages("fcfs")
	if err != nil || len(pages) != 2 || pages[0].Kind != "system" || pages[1].Kind != string(Router) {
		t.Fatalf("fcfs is a system and a router: %+v, %v", pages, err)
	}
	found := false
	for _, o := range pages[0].Options {
		if o.Key == "options.idle" {
			found = o.Value == "true" && o.Default == "false" && len(o.ReadBy) == 1 && o.ReadBy[0] == "router fcfs"
		}
	}
	if !found {
		t.Errorf("the page of system fcfs does not say that it sets idle: %+v", pages[0].Options)
	}
	if s := pages[1].Systems; len(s) == 0 || s[0] != "triton-like" {
		t.Errorf("the router fcfs is in %v", s)
	}
}

func TestPagesThatDoNotExist(t *testing.T) {
	for name, want := range map[string]string{
		"protues": `(did you mean "proteus"?)`, "ratebnds": `(did you mean "ratebands"?)`,
		"":      `system or component "" does not exist`,
		"gamma": "an option, read by the keep-alive rule lsth", "fcfs+none": `component "fcfs+none" does not exist`,
	} {
		if _, err := Pages(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
}
