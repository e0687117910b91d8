package config

import (
	"strings"
	"testing"
	"time"
)

func TestWithObjectives(t *testing.T) {
	const text = `version: 1
device_types: [{name: local}]
workers: [{name: here, backend: {kind: fake}}]   # latency: of nothing
apps:
  - {name: a, slo: {latency: 50ms, proposed: true}, variants: [{model: m}]}   # mine
  - name: b
    slo:
      latency: 100ms   # later
      proposed: true
    variants: [{model: n}]
  - {name: c, slo: {latency: 1s}, variants: [{model: o}]}
`
	f, err := Parse([]byte(text), "sluice.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.WithObjectives([]byte(text), map[string]time.Duration{"a": time.Second, "b": 1500 * time.Millisecond,
		"elsewhere": time.Hour})
	want := strings.NewReplacer("latency: 50ms", "latency: 1s", "latency: 100ms", "latency: 1.5s").Replace(text)
	if err != nil || string(got) != want {
		t.Errorf("%v, got:\n%s", err, got)
	}
	odd := strings.Replace(text, "slo: {latency: 1s}", "slo: {\"latency\": 1s}", 1)
	if f, err = Parse([]byte(odd), "sluice.yaml"); err != nil {
		t.Fatal(err)
	}
	_, err = f.WithObjectives([]byte(odd), map[string]time.Duration{"c": time.Minute})
	if err == nil || !strings.Contains(err.Error(), "sluice.yaml:11: apps[2].slo.latency: ") {
		t.Errorf("a key in quotes: %v", err)
	}
}
