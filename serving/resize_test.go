package serving

import (
	"slices"
	"strings"
	"testing"
)

func TestResized(t *testing.T) {
	s := good()
	s.DeviceTypes = []DeviceType{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	s.Workers = []Worker{{"a-0", 0}, {"b-0", 1}, {"a-1", 0}, {"c-new-0", 2}, {"a-2", 0}}
	before := len(s.Workers)
	out, moved, err := s.Resized([]int{-2, 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, w := range out.Workers {
		names = append(names, w.Name+":"+s.DeviceTypes[w.DeviceType].Name)
	}
	if got := strings.Join(names, " "); got != "a-0:a b-0:b c-new-0:c b-new-0:b c-new-new-0:c" {
		t.Errorf("workers are %s", got)
	}
	for w, want := range []WorkerID{0, 1, None, 2, None} {
		if moved[w] != want {
			t.Errorf("worker %d is %d afterwards, want %d", w, moved[w], want)
		}
	}
	if len(s.Workers) != before {
		t.Error("the original changed")
	}
	if err := out.Validate(); err != nil {
		t.Error(err)
	}
	if _, _, err := s.Resized([]int{0, -2}); err == nil ||
		!strings.Contains(err.Error(), `2 workers of device type "b" cannot go: there are 1`) {
		t.Errorf("%v", err)
	}
}

func TestRented(t *testing.T) {
	s := &Spec{DeviceTypes: []DeviceType{{Name: "a"}, {Name: "b"}, {Name: "c"}}, Workers: []Worker{{Name: "old"}}}
	got := s.WithWorkers([]int{2, 0, 1})
	want := []Worker{{"a-0", 0}, {"a-1", 0}, {"c-0", 2}}
	if !slices.Equal(got.Workers, want) || len(s.Workers) != 1 {
		t.Errorf("%v, want %v; the world before has %v", got.Workers, want, s.Workers)
	}
}

func TestPartsAreNotResized(t *testing.T) {
	s := &Spec{DeviceTypes: []DeviceType{{Name: "machine"}, {Name: "half", Part: true}}}
	if _, _, err := s.Resized([]int{1, 0}); err != nil {
		t.Error(err)
	}
	if _, _, err := s.Resized([]int{0, 1}); err == nil {
		t.Error("a worker that is a part of a machine")
	}
}
