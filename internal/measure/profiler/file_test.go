package profiler

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/bounded"
	"github.com/sluice-serving/sluice/serving"
)

func goodPoint() Point {
	return Point{
		Variant: "a", DeviceType: "cpu", Batch: 2, Concurrency: 1, Samples: 99, Mean: 10.5, StdDev: 1, P50: 10, P90: 11,
		P95: 12, P99: 13,
	}
}

func goodFile() *File {
	return &File{
		Version: Version, Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Host: Host{CPU: "c", Cores: 2, OS: "linux/amd64"}, DeviceType: "cpu",
		Points: []Point{goodPoint()}, Loads: []Load{{Variant: "a", DeviceType: "cpu", Load: 12.5}},
	}
}

func namedSpec(variants ...string) *serving.Spec {
	s := &serving.Spec{DeviceTypes: []serving.DeviceType{{Name: "gpu"}, {Name: "cpu"}}}
	for _, v := range variants {
		s.Variants = append(s.Variants, serving.Variant{Name: v, MaxBatch: 8})
	}
	return s
}

func TestFileRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "p.json")
	f := goodFile()
	if err := f.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	got, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(f, got) {
		t.Errorf("wrote %+v, read %+v", f, got)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("files left beside the profile: %v, %v", left, err)
	}
	bad := goodFile()
	bad.Points[0].Mean = -1
	if err := bad.WriteFile(path); err == nil {
		t.Error("an invalid profile was written")
	}
	if _, err := ReadFile(path); err != nil {
		t.Errorf("a failed write harmed the old file: %v", err)
	}
}

func TestDecodeNamesTheFault(t *testing.T) {
	var b bytes.Buffer
	if err := goodFile().Encode(&b); err != nil {
		t.Fatal(err)
	}
	good := b.String()
	if _, err := Decode(strings.NewReader("\ufeff" + good)); err != nil {
		t.Errorf("with a byte order mark: %v", err)
	}
	for _, c := range []struct{ old, new, want string }{
		{`"version": 1`, `"version": 2`, "version is 2"},
		{`"samples": 99`, `"samples": 0`, "points[0].samples"},
		{`"samples": 99`, `"sample": 99`, "sample"},
		{`"batch": 2`, `"batch": 0`, "points[0].batch is 0"},
		{`"batch": 2`, `"batch": 2.5`, "batch"},
		{`"concurrency": 1`, `"concurrency": -1`, "points[0].concurrency is -1"},
		{`"mean_us": 10.5`, `"mean_us": 0`, "points[0].mean_us is 0"},
		{`"mean_us": 10.5`, `"mean_us": 1e300`, "points[0].mean_us"},
		{`"stddev_us": 1`, `"stddev_us": -1`, "points[0].stddev_us is -1"},
		{`"p95_us": 12`, `"p95_us": 1`, "points[0].p95_us is 1, less than"},
		{`"variant": "a"`, `"variant": ""`, "points[0].variant is empty"},
		{`"load_ms": 12.5`, `"load_ms": -2`, "loads[0].load_ms is -2"},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		if text == good {
			t.Fatalf("%q is not in the file", c.old)
		}
		if _, err := Decode(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want one that says %q", c.new, err, c.want)
		}
	}
	for _, text := range []string{good + "{}", "", "null", "[]", `{"version":1}x`} {
		if _, err := Decode(strings.NewReader(text)); err == nil {
			t.Errorf("%.20q was accepted", text)
		}
	}
	twice := goodFile()
	twice.Points = append(twice.Points, goodPoint())
	if err := twice.Validate(); err == nil ||
		!strings.Contains(err.Error(), "points[1] measures the same as points[0]") {
		t.Errorf("a point measured twice: %v", err)
	}
}

func TestMeasurementsResolveNames(t *testing.T) {
	f := goodFile()
	guess := goodPoint()
	guess.Batch, guess.Interpolated, guess.Samples = 3, true, 0
	f.Points = append(f.Points, guess)
	m, err := f.Measurements(namedSpec("b", "a"))
	if err != nil {
		t.Fatal(err)
	}
	us := time.Microsecond
	want := serving.Measurements{
		Latency: []serving.LatencyPoint{
			{
				Variant: 1, DeviceType: 1, Items: 2, Concurrency: 1, Samples: 99, Mean: 10500, StdDev: us, P50: 10 * us,
				P90: 11 * us, P95: 12 * us, P99: 13 * us,
			},
		},
		Load: []serving.LoadPoint{{Variant: 1, DeviceType: 1, Load: 12500 * us}},
	}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("got %+v, want %+v", m, want)
	}
	if _, err := f.Measurements(namedSpec("b")); err == nil ||
		!strings.Contains(err.Error(), `points[0].variant is "a"`) {
		t.Errorf("unknown variant: %v", err)
	}
	// Variants of one name, in several apps, are the same model.
	if m, err := f.Measurements(namedSpec("a", "a")); err != nil || len(m.Latency) != 2 || len(m.Load) != 2 ||
		m.Latency[0].Variant != 0 || m.Latency[1].Variant != 1 || m.Latency[0].Mean != m.Latency[1].Mean {
		t.Errorf("a model of two apps: %+v, %v", m, err)
	}
	f.Points[0].DeviceType = "tpu"
	if _, err := f.Measurements(namedSpec("a")); err == nil ||
		!strings.Contains(err.Error(), `points[0].device_type is "tpu"`) {
		t.Errorf("unknown device type: %v", err)
	}
	kept, left := f.Only(namedSpec("a"))
	if left != 1 || len(kept.Points) != 1 || len(kept.Loads) != 1 || len(f.Points) != 2 {
		t.Errorf("kept %+v, left out %d", kept, left)
	}
}

func TestOverheadsOfFiles(t *testing.T) {
	a, b := goodFile(), goodFile()
	a.Overheads = []Overhead{{DeviceType: "cpu", Queries: 9, Batch: 80, Query: 700}}
	b.Overheads = []Overhead{{DeviceType: "gpu", Batch: 1}, {DeviceType: "cpu", Batch: 2, Query: 3}}
	merged, err := Merge(a, b)
	if err != nil {
		t.Fatal(err)
	}
	m, err := merged.Measurements(namedSpec("a"))
	if err != nil {
		t.Fatal(err)
	}
	want := []serving.Overhead{
		{DeviceType: 1, Batch: 2 * time.Microsecond, Query: 3 * time.Microsecond},
		{DeviceType: 0, Batch: time.Microsecond},
	}
	if !reflect.DeepEqual(m.Overhead, want) {
		t.Errorf("got %+v, want %+v", m.Overhead, want)
	}
	var text bytes.Buffer
	if err := merged.Encode(&text); err != nil {
		t.Fatal(err)
	}
	if again, err := Decode(&text); err != nil || !reflect.DeepEqual(again.Overheads, merged.Overheads) {
		t.Errorf("read %+v, %v", again, err)
	}
	spec := namedSpec("a")
	spec.DeviceTypes = spec.DeviceTypes[1:]
	if kept, _ := merged.Only(spec); len(kept.Overheads) != 1 || kept.Overheads[0].DeviceType != "cpu" {
		t.Errorf("kept %+v", kept.Overheads)
	}
	for _, wrong := range [][]Overhead{
		{{Batch: 1}}, {{DeviceType: "cpu", Batch: -1}}, {{DeviceType: "cpu"}, {DeviceType: "cpu"}},
	} {
		f := goodFile()
		f.Overheads = wrong
		if err := f.Validate(); err == nil || !strings.HasPrefix(err.Error(), "overheads[") {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}

func TestMerge(t *testing.T) {
	a, b := goodFile(), goodFile()
	b.Created = a.Created.Add(time.Hour)
	b.Points[0].Mean = 11
	other := goodPoint()
	other.DeviceType = "gpu"
	b.Points = append(b.Points, other)
	b.Loads[0].Load = 1
	m, err := Merge(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Points) != 2 || m.Points[0].Mean != 11 || m.Points[1].DeviceType != "gpu" || len(m.Loads) != 1 ||
		m.Loads[0].Load != 1 || m.Host != a.Host || !m.Created.Equal(b.Created) {
		t.Errorf("got %+v", m)
	}
	b.Host.CPU, b.DeviceType = "d", "gpu"
	if m, err = Merge(a, b); err != nil || m.Host != (Host{}) || m.DeviceType != "" {
		t.Errorf("files of two machines: %+v, %v", m, err)
	}
	b.Version = 0
	if _, err := Merge(a, b); err == nil {
		t.Error("an invalid file was merged")
	}
}

func FuzzDecode(f *testing.F) {
	var b bytes.Buffer
	if err := goodFile().Encode(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(`{"version":1,"points":null,"loads":[]}`))
	f.Add([]byte(`{"version":1,"points":[{"variant":"a","device_type":"d","batch":1,"concurrency":1,"samples":1,` +
		`"mean_us":1e-3,"p50_us":1,"p90_us":1,"p95_us":1,"p99_us":1e12}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer bounded.Watch(t, bounded.Fuzz(len(data)))()
		p, err := Decode(bytes.NewReader(data))
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := p.Encode(&b); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again, err := Decode(bytes.NewReader(b.Bytes()))
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if len(again.Points) != len(p.Points) || len(again.Loads) != len(p.Loads) {
			t.Fatal("points or loads were lost")
		}
		m, err := p.Measurements(namedSpec("a"))
		for _, l := range m.Latency {
			if err == nil && (l.Mean <= 0 || l.P99 < l.P50) {
				t.Fatalf("impossible latency %+v", l)
			}
		}
	})
}
