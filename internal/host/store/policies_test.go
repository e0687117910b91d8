package store

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/bounded"
	"github.com/sluice-serving/sluice/policy/plan"
)

const key = "0123456789abcdef0123456789abcdef"

func policy() *plan.Policy {
	return &plan.Policy{Rate: 400, Slacks: []time.Duration{0, 75 * time.Millisecond, 150 * time.Millisecond},
		Choices: []plan.Choice{
			{Variant: 0, Queries: 1}, {Variant: 1, Queries: 1}, {Variant: 2, Queries: 1}, {Variant: 0, Queries: 2},
			{Variant: 0, Queries: 2}, {Variant: 1, Queries: 1},
		},
		Promise: plan.Promise{
			Accuracy: 0.8, Violation: 0.001, MedianAccuracy: 0.81, Worst99Accuracy: 0.6, Utilization: 0.9,
		}}
}

func TestPolicies(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "policies")
	p := OpenPolicies(dir)
	if _, ok := p.Get(key); ok {
		t.Error("found before it was kept")
	}
	p.Put(key, policy())
	if err := p.Err(); err != nil {
		t.Fatal(err)
	}
	got, ok := OpenPolicies(dir).Get(key)
	if !ok || !reflect.DeepEqual(got, policy()) {
		t.Errorf("%+v", got)
	}
	// What lies under the wrong name, or is cut off, is missing.
	other := strings.Repeat("f", 32)
	whole, err := os.ReadFile(filepath.Join(dir, key+".json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"of another": whole, "cut off": whole[:len(whole)/2], "empty": nil} {
		if err := os.WriteFile(filepath.Join(dir, other+".json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, ok := p.Get(other); ok {
			t.Errorf("%s: found", name)
		}
	}
	for _, bad := range []string{"", "../../etc/passwd", "ABCDEF0123456789", "0123"} {
		if _, ok := p.Get(bad); ok {
			t.Errorf("key %q: found", bad)
		}
		q := OpenPolicies(dir)
		if q.Put(bad, policy()); q.Err() == nil {
			t.Errorf("key %q: kept", bad)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("%d files in the folder, want the two policies", len(entries))
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	q := OpenPolicies(filepath.Join(file, "below"))
	if q.Put(key, policy()); q.Err() == nil {
		t.Error("a folder that cannot be made gave no error")
	}
}

// Whatever lies in a file, reading it gives a policy that can be looked things up in, or an error.
func FuzzReadPolicy(f *testing.F) {
	var whole bytes.Buffer
	if err := WritePolicy(&whole, key, policy()); err != nil {
		f.Fatal(err)
	}
	f.Add(whole.Bytes())
	f.Add([]byte(`{"format":"sluice-policy/1","slacks_ns":[0],"variants":[[0]],"queries":[[1]]}`))
	f.Add([]byte(`{"format":"sluice-policy/1","slacks_ns":[0,-5],"variants":[[0,0],[0,0]],"queries":[[1,1],[3,1]]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer bounded.Watch(t, bounded.Fuzz(len(text)))()
		p, err := ReadPolicy(bytes.NewReader(text), "")
		if err != nil {
			return
		}
		for _, n := range []int{1, 2, 1000} {
			for _, left := range []time.Duration{-time.Hour, 0, time.Millisecond, time.Hour} {
				if c := p.Choice(n, left); c.Queries < 1 || int(c.Queries) > n {
					t.Fatalf("%d queries, %v left: %+v", n, left, c)
				}
			}
		}
	})
}
