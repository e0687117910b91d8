package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A file that somebody keeps says what means something else than in Triton, of the models for which it does. A file
// that is made for a start does not; what is not applied at all is said in both.
func TestRemarksOnTritonsModels(t *testing.T) {
	const (
		twice, unbounded = "apps of their own and steps of ensembles", "bounds no queue without max_queue_size"
		late, joined     = "however long they waited", "one by one"
		ordering, levels = "preserve_ordering is not applied", "priority_levels is 200"
	)
	const policy = `dynamic_batching { default_queue_policy { default_timeout_microseconds: 1000 max_queue_size: 5 } }`
	for _, c := range []struct {
		name, m0, m1 string
		ensemble     bool
		want         []string
	}{
		{"as Triton does it", policy, policy, false, nil},
		{"a step as well", policy, policy, true, []string{twice}},
		{
			"no bound", policy, strings.Replace(policy, "max_queue_size: 5", "", 1), false, []string{unbounded},
		},
		{
			"no time", `dynamic_batching { default_queue_policy { max_queue_size: 5 } }`, policy, false, []string{late},
		},
		{"nothing said", "dynamic_batching { }", policy, false, []string{unbounded, late}},
		{"not batched", "", policy, false, []string{unbounded, late, joined}},
		{
			"not applied", policy, strings.Replace(policy, "{", "{ preserve_ordering: true priority_levels: 200", 1),
			false, []string{ordering, levels},
		},
	} {
		dir := manyModels(t, 2)
		for name, text := range map[string]string{"m0": c.m0, "m1": c.m1} {
			if err := os.WriteFile(filepath.Join(dir, name, "config.pbtxt"), []byte("max_batch_size: 4 "+text),
				0o600); err != nil {
				t.Fatal(err)
			}
		}
		if !c.ensemble {
			if err := os.RemoveAll(filepath.Join(dir, "whole")); err != nil {
				t.Fatal(err)
			}
		}
		for _, kept := range []bool{true, false} {
			_, notes, err := ImportTriton(dir, filepath.Join(dir, "sluice.yaml"), Importing{Remarks: kept})
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{twice, unbounded, late, joined, ordering, levels} {
				lost := part == ordering || part == levels
				want := slices.Contains(c.want, part) && (kept || lost)
				if got := strings.Contains(strings.Join(notes, "\n"), part); got != want {
					t.Errorf("%s, kept %t: %q is said: %t, want %t; notes are %q", c.name, kept, part, got, want, notes)
				}
			}
		}
	}
}

// That a model's dynamic_batching is not applied is said where the file has no queue for it, and not of a file that
// was made of it.
func TestQueuesThatAreNotApplied(t *testing.T) {
	dir := manyModels(t, 2)
	config := filepath.Join(dir, "m0", "config.pbtxt")
	const policy = "max_batch_size: 4 dynamic_batching { max_queue_delay_microseconds: 100 }"
	if err := os.WriteFile(config, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "m1", "config.pbtxt"), []byte("max_batch_size: 4 dynamic_batching { }"),
		0o600); err != nil {
		t.Fatal(err)
	}
	warned := func(text []byte) int {
		f, err := Parse(text, filepath.Join(dir, "sluice.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		w, err := f.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(strings.Join(w.Warnings, "\n"), "dynamic_batching is not applied")
	}
	imported, _, err := ImportTriton(dir, filepath.Join(dir, "sluice.yaml"), Importing{})
	if err != nil {
		t.Fatal(err)
	}
	if n := warned(imported); n != 0 {
		t.Errorf("a file that has the queue: %d warnings", n)
	}
	if n := warned([]byte("version: 1\ndevice_types: [{name: d}]\nworkers: [{name: w, backend: {kind: onnx}}]\n" +
		"models: {repository: .}\napps:\n" + "  - {name: m0, slo: {latency: 1s}, variants: [{name: m0}]}\n" +
		"  - {name: m1, slo: {latency: 1s}, variants: [{name: m1}]}\n")); n != 1 {
		t.Errorf("a file without a queue: %d warnings, want one of m0", n)
	}
	text, _, err := Init(dir, Found{})
	if err != nil || strings.Count(string(text), "dynamic_batching is not applied") != 1 {
		t.Errorf("config init: %v, %s", err, text)
	}
}
