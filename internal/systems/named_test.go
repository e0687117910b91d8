package systems

import (
	"reflect"
	"strings"
	"testing"
)

// A system is found by its name, with or without a plus, and a composition by its components.
func TestNamed(t *testing.T) {
	for _, want := range All() {
		if got, err := Named(want.Name); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", want.Name, got, err)
		}
	}
	got, err := Named("fcfs+adaptive")
	if err != nil || !reflect.DeepEqual(got, System{Name: "fcfs+adaptive", Router: "fcfs", Batcher: "adaptive"}) {
		t.Errorf("a router and a batcher: %+v, %v", got, err)
	}
	for text, says := range map[string]string{
		"none": `system "none" does not exist`, "fcfs+none": `batcher "none" does not exist`,
		"none+single": `router "none" does not exist`, "openfaas+none": `router "openfaas" does not exist`,
		"jellyfish+rs": `router "jellyfish" does not exist`, "fcfs+": `batcher "" does not exist`,
	} {
		if _, err := Named(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}
