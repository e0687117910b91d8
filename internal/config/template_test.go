package config

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
)

func TestTheTemplateIsCompleteAndValid(t *testing.T) {
	f, err := Parse(Template(), "template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := string(Template())
	_, paths := manual(t)
	given := map[string]bool{}
	index := regexp.MustCompile(`\[\d+\]`)
	for p := range f.lines {
		given[index.ReplaceAllString(p, "[]")] = true
	}
	for _, p := range paths {
		if given[p] || strings.HasPrefix(p, "apps[].system.") { // shown in full at the top level
			continue
		}
		key := p[strings.LastIndex(p, ".")+1:]
		shown := regexp.MustCompile(`(?m)^ *#: *(.*[{ ])?` + key + `:`)
		if !shown.MatchString(text) && !strings.Contains(p, "stages[].variants[]") {
			t.Errorf("%s is not in the template", p)
		}
	}
	// Uncommenting lines one at a time must give files that are read, even if they are incomplete.
	for _, line := range regexp.MustCompile(`(?m)^( *)#: .*$`).FindAllString(text, -1) {
		one := strings.Replace(text, line, strings.Replace(line, "#: ", "", 1), 1)
		one = strings.Replace(one, "tls: {} ", "tls: ", 1)
		if _, err := Parse([]byte(one), "template.yaml"); err != nil && (strings.Contains(err.Error(), "unknown key") ||
			strings.Contains(err.Error(), " want a ")) {
			t.Errorf("with %q: %v", line, err)
		}
	}
}

// TestTheTemplateShowsTheDefaults compares the parts of the template that promise to show defaults with a file without
// them.
func TestTheTemplateShowsTheDefaults(t *testing.T) {
	full, err := Parse(Template(), "template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	bare, err := Parse([]byte(small), "x.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(full.Server, bare.Server) || !reflect.DeepEqual(full.Telemetry, bare.Telemetry) ||
		!reflect.DeepEqual(full.System, bare.System) {
		t.Errorf("template:\n%+v\n%+v\n%+v\ndefaults:\n%+v\n%+v\n%+v", full.Server, full.Telemetry, full.System,
			bare.Server, bare.Telemetry, bare.System)
	}
	a, b := full.Apps[0], bare.Apps[0]
	if a.Late != b.Late || a.Weight != b.Weight || a.QueueLimit != b.QueueLimit ||
		a.SLO.Percentile != b.SLO.Percentile {
		t.Errorf("app %+v, defaults %+v", a, b)
	}
}
