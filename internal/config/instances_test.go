package config

import (
	"strings"
	"testing"
)

// The least and the most instances of an app reach the tables, and what contradicts itself is refused.
func TestInstancesOfApps(t *testing.T) {
	with := func(lines string) string {
		return "version: 1\ndevice_types: [{name: cpu}]\n" +
			"workers: [{name: w, device_type: cpu, backend: {kind: fake, latency: 1ms}}]\n" +
			"apps:\n  - name: a\n    slo: {latency: 1s}\n    inputs: [{name: x, datatype: FP32, shape: [-1, 1]}]\n" +
			"    variants: [{name: v}]\n" + lines
	}
	f, err := Parse([]byte(with("    min_instances: 2\n    max_instances: 3\n")), "f.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w, err := f.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	if a := &w.Spec.Apps[0]; a.MinInstances != 2 || a.MaxInstances != 3 {
		t.Errorf("%d to %d instances, want 2 to 3", a.MinInstances, a.MaxInstances)
	}
	for lines, want := range map[string]string{
		"    min_instances: -1\n":                      "min_instances: is -1, want 0 to 10000",
		"    max_instances: -1\n":                      "max_instances: is -1, want 0 to 10000",
		"    min_instances: 4\n    max_instances: 3\n": "max_instances: is 3, less than min_instances, 4",
	} {
		if _, err := Parse([]byte(with(lines)), "f.yaml"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", lines, err, want)
		}
	}
}
