package demo

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/models/digits"
	"github.com/sluice-serving/sluice/serving"
)

// The configuration that the demo writes is one that the server reads. Apps that read one digit have the same models,
// which are measured once.
func TestSharedConfig(t *testing.T) {
	dir := t.TempDir()
	d := &Shared{}
	d.Dir = dir
	single, err := d.write(digits.Pictures)
	if err != nil {
		t.Fatal(err)
	}
	graph, err := d.write(digits.SceneModels)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := sharedConfig(&b, single, graph); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "sluice.yaml")
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := f.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	var names [][]string
	for a := range r.Spec.Apps {
		var of []string
		for _, v := range r.Spec.Stages[r.Spec.Apps[a].Stages[0]].Variants {
			of = append(of, r.Spec.Variants[v].Name)
		}
		names = append(names, of)
	}
	if len(names) != 3 || len(About) != 3 || !slices.Equal(names[cameraApp], names[uploadsApp]) ||
		!slices.Equal(names[cameraApp], []string{"xlarge", "medium", "small", "tiny"}) {
		t.Errorf("variants %q", names)
	}
	for _, name := range Ladders {
		if !slices.ContainsFunc(r.Spec.Apps, func(a serving.App) bool { return a.Name == name }) {
			t.Errorf("there is no app %q", name)
		}
	}
}

// A load is highest within its event, whatever the length of the run, and events follow each other.
func TestEventsAreWhereTheLoadRises(t *testing.T) {
	for _, length := range []time.Duration{time.Second, 40 * time.Second, 10 * time.Minute} {
		d := &Shared{}
		d.Length = length
		events := d.Events()
		for a, e := range map[serving.AppID]Event{cameraApp: events[0], scenesApp: events[1], uploadsApp: events[2]} {
			rates := d.rates(a, 100)
			for i, r := range rates {
				if i > 0 && r.AtS <= rates[i-1].AtS {
					t.Errorf("%v: rates %+v", length, rates)
				}
				at := time.Duration(r.AtS * 1e9)
				within := at > e.From+length/1000 && at < e.To-length/1000
				if within != (r.Rate > 50) {
					t.Errorf("%v: %v queries/s at %v s, the event is %+v", length, r.Rate, r.AtS, e)
				}
			}
			if last := rates[len(rates)-1].AtS; last != length.Seconds() {
				t.Errorf("%v: the load ends at %v s", length, last)
			}
		}
		for i, e := range events {
			if e.From >= e.To || i > 0 && e.From <= events[i-1].To || e.To > length {
				t.Errorf("%v: %+v", length, events)
			}
		}
	}
}
