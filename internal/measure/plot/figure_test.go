package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
)

// bursty is an invented run with a burst in the middle.
func bursty(seed uint64, slow float64) *report.Report {
	r := rand.New(rand.NewPCG(seed, 1))
	rec := report.NewRecorder([]report.AppInfo{
		{Name: "digits", BestAccuracy: 0.98, SLO: serving.SLO{Latency: 100 * time.Millisecond, Percentile: 95}},
	}, report.Options{})
	for at := 0.0; at < 30; {
		rate := 300 + 900*math.Exp(-(at-15)/4*((at-15)/4))
		at += r.ExpFloat64() / rate
		load := rate / 1200
		latency := (8 + 80*load*r.ExpFloat64()*load) * slow
		arrived := serving.Time(at * 1e9)
		o := report.Outcome{
			Arrived: arrived, Done: arrived + serving.Time(latency*1e6), Deadline: arrived + 100e6, Items: 1,
			Batch: 1 + int32(12*load*r.Float64()), Accuracy: 0.98 - 0.15*load, Label: report.LabelWrong,
		}
		// under more load a smaller variant answers
		o.Variant = serving.VariantID(min(4, max(0, int(load*5+r.NormFloat64()*0.6))))
		if r.Float64() < o.Accuracy {
			o.Label = report.LabelRight
		}
		if latency > 160 {
			o.Outcome = serving.Dropped
			o.Done = o.Deadline
		}
		rec.Add(&o)
	}
	return rec.Report(report.Meta{
		Name: "live", Duration: 30 * time.Second, Variants: []string{
			"digits-xlarge", "digits-large", "digits-medium", "digits-small", "digits-tiny",
		},
	})
}

func TestFormats(t *testing.T) {
	live, simulated := bursty(1, 1), bursty(2, 1.02)
	for _, c := range []struct {
		file    string
		names   []string
		reports []*report.Report
	}{
		{"one", []string{"live"}, []*report.Report{live}},
		{"two", []string{"live", "simulated"}, []*report.Report{live, simulated}},
		{"three", []string{"live", "simulated", "slower"}, []*report.Report{live, simulated, bursty(3, 1.5)}},
	} {
		f, err := New("digits: bursty load on two instances", c.names, c.reports)
		if err != nil {
			t.Fatal(err)
		}
		var a, b bytes.Buffer
		if err := f.PNG(&a); err != nil {
			t.Fatal(err)
		}
		if err := f.SVG(&b); err != nil {
			t.Fatal(err)
		}
		if dir := os.Getenv("SLUICE_PLOT_DIR"); dir != "" { // to look at them
			for name, data := range map[string][]byte{c.file + ".png": a.Bytes(), c.file + ".svg": b.Bytes()} {
				if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		img, err := png.Decode(bytes.NewReader(a.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		colours := map[[3]uint32]int{}
		for y := img.Bounds().Min.Y; y < img.Bounds().Max.Y; y++ {
			for x := img.Bounds().Min.X; x < img.Bounds().Max.X; x++ {
				r, g, b, _ := img.At(x, y).RGBA()
				colours[[3]uint32{r >> 8, g >> 8, b >> 8}]++
			}
		}
		for name, c := range map[string][3]uint32{
			"served": {0x25, 0x63, 0xeb}, "accuracy": {0x05, 0x96, 0x69}, "measured": {0xd9, 0x77, 0x06},
			"p99": {0x7c, 0x3a, 0xed}, "batch": {0x0e, 0x74, 0x90}, "SLO": {0xdc, 0x26, 0x26},
		} {
			if colours[c] < 50 {
				t.Errorf("%v: the colour of %s covers %d pixels, want a curve's worth", len(f.names), name, colours[c])
			}
		}
		svg := b.String()
		d := xml.NewDecoder(&b)
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("the SVG is not well-formed: %v", err)
			}
		}
		for _, want := range append([]string{
			"Queries per second", "Latency (ms)", "Accuracy (%)", "Mean batch size (items)", "time (s)",
			"SLO violations", "measured", "Answered by variant", ">xlarge<", ">tiny<",
		}, c.names[1:]...) {
			if !strings.Contains(svg, want) {
				t.Errorf("the SVG does not say %q", want)
			}
		}
		var again bytes.Buffer
		if err := f.SVG(&again); err != nil || again.String() != svg {
			t.Errorf("a second writing differs (%v)", err)
		}
	}
}

func TestThinReports(t *testing.T) {
	rec := report.NewRecorder([]report.AppInfo{{Name: "a"}}, report.Options{})
	rec.Add(&report.Outcome{Outcome: serving.Refused, Arrived: 5, Done: 5})
	f, err := New("", []string{"x"}, []*report.Report{rec.Report(report.Meta{Duration: time.Second})})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.panels) != 1 {
		t.Errorf("%d panels for a run that served nothing, want the rates alone", len(f.panels))
	}
	if err := f.PNG(io.Discard); err != nil {
		t.Fatal(err)
	}
	empty := report.NewRecorder(nil, report.Options{}).Report(report.Meta{})
	for _, c := range [][]*report.Report{nil, {nil}, {empty}, {empty, empty, empty, empty, empty}} {
		if _, err := New("", make([]string, len(c)), c); err == nil {
			t.Errorf("%d reports without content were accepted", len(c))
		}
	}
	if _, err := New("", nil, []*report.Report{empty}); err == nil {
		t.Error("a report without a name was accepted")
	}
}

func TestShorten(t *testing.T) {
	for _, c := range [][2][]string{
		{{"digits-large", "digits-small"}, {"large", "small"}},
		{{"resnet18", "resnet152"}, {"resnet18", "resnet152"}},
		{{"one"}, {"one"}},
		{{"a-b", "c-d"}, {"a-b", "c-d"}},
		{{"a", "a very long name indeed"}, {"a", "a very long name …"}},
	} {
		if got := shorten(c[0]); strings.Join(got, "|") != strings.Join(c[1], "|") {
			t.Errorf("%v shortens to %v, want %v", c[0], got, c[1])
		}
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      string
	}{
		{0, 1200, "0 500 1,000"}, {0, 1, "0.0 0.2 0.4 0.6 0.8 1.0"}, {85, 100, "85 90 95 100"}, {-2, 2, "-2 -1 0 1 2"},
		{0, 0.04, "0.00 0.01 0.02 0.03 0.04"},
	} {
		var got []string
		for _, k := range (ticks{most: 5}).Ticks(c.low, c.high) {
			got = append(got, k.Label)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("ticks of [%v, %v] are %s, want %s", c.low, c.high, s, c.want)
		}
	}
}
