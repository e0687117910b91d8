package config

import (
	"strings"
	"testing"
)

func TestTheChainTemplate(t *testing.T) {
	a, err := ParseChain(ChainTemplate(), "chain.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if a.Name != "read" || len(a.Stages) != 2 || len(a.Stages[1].Variants) != 2 || !IsChain(ChainTemplate()) ||
		IsChain(FunctionTemplate()) {
		t.Errorf("%+v", a)
	}
	f, err := Parse([]byte(small), "sluice.yaml")
	if err != nil {
		t.Fatal(err)
	}
	g, err := f.WithChain(ChainTemplate(), "chain.yaml", "there")
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Apps) != 1 || g.Apps[0].Name != "read" || g.Models.Repository != "there" || len(f.Apps) != 1 ||
		f.Apps[0].Name == "read" {
		t.Errorf("%+v", g.Apps)
	}
}

func TestBadChains(t *testing.T) {
	const steps = "stages: [{name: a, variants: [{model: m}], next: [{to: b}]}, {name: b, function: argmax}]\n"
	const head = "name: c\nslo: {latency: 1s}\n"
	const good = head + steps
	if _, err := ParseChain([]byte(good), "chain.yaml"); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":                                         "empty",
		good + "late: soon\n":                      "chain.yaml:4: late: is \"soon\"",
		good + "version_of: d\n":                   "version_of: cannot",
		good + "system: {name: fcfs}\n":            "system: cannot",
		good + "stages: []\n":                      "given twice",
		head + "stages: []\n":                      "stages: is missing",
		"slo: {latency: 1s}\n" + steps:             "name: is missing",
		"name: ../c\nslo: {latency: 1s}\n" + steps: "chain.yaml:1: name",
		"name: c\n" + steps:                        "slo.latency: is missing",
		head + "stages: [{name: a, variants: [{python: x.py}]}]":              "python: cannot",
		head + "stages: [{name: a, variants: [{model: m}], next: [{to: x}]}]": "to: ",
	} {
		if _, err := ParseChain([]byte(text), "chain.yaml"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
