package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func falling(name string, end, from, to float64) Frontier {
	f := Frontier{Name: name}
	for k := 1.0; k <= 10; k++ {
		x := k / 10
		a := from + (to-from)*x*x
		f.Points = append(f.Points, FrontierPoint{
			Throughput: end * x, Accuracy: a, Apps: []float64{a + 0.01, a - 0.02}, Shares: []float64{x * x, 1 - x*x, 0},
		})
	}
	return f
}

func TestFrontiers(t *testing.T) {
	legend := Legend{
		Demand: 300, Apps: []string{"digits", "scenes"}, Variants: []string{"digits-small", "digits-large",
			"digits-none"}, Accuracies: []float64{0.7, 0.9, 0.95},
	}
	for _, c := range []struct {
		file   string
		list   []Frontier
		has    []string
		hasNot []string
	}{
		{"frontier-one", []Frontier{falling("proteus", 900, 0.95, 0.8)},
			[]string{
				"Accuracy (%)", "Accuracy of each app (%)", ">scenes<", "Served by variant (% of items)", ">small<",
				"queries served per second", "the demand asked for",
			}, []string{">none<", "time (s)"}},
		{"frontier-three", []Frontier{
			falling("proteus", 900, 0.95, 0.8), falling("clipper-ht", 900, 0.78, 0.78),
			falling("clipper-ha", 250, 0.95, 0.95),
		},
			[]string{
				"Accuracy (%)", ">proteus<", ">clipper-ha<", "queries served per second",
			}, []string{"Served by variant", "of each app"}},
	} {
		f, err := NewFrontier("What this fleet gives", legend, c.list)
		if err != nil {
			t.Fatal(err)
		}
		var a, b bytes.Buffer
		if err := errors.Join(f.PNG(&a), f.SVG(&b)); err != nil {
			t.Fatal(err)
		}
		if dir := os.Getenv("SLUICE_PLOT_DIR"); dir != "" { // to look at them
			if err := os.WriteFile(filepath.Join(dir, c.file+".png"), a.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		img, err := png.Decode(bytes.NewReader(a.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.list {
			pixels, want := 0, distinct[i]
			for y := img.Bounds().Min.Y; y < img.Bounds().Max.Y; y++ {
				for x := img.Bounds().Min.X; x < img.Bounds().Max.X; x++ {
					if r, g, b, _ := img.At(x, y).RGBA(); uint8(r>>8) == want.R && uint8(g>>8) == want.G &&
						uint8(b>>8) == want.B {
						pixels++
					}
				}
			}
			if pixels < 300 {
				t.Errorf("%s: the colour of %s covers %d pixels, want a line's worth", c.file, c.list[i].Name, pixels)
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
		for _, want := range c.has {
			if !strings.Contains(svg, want) {
				t.Errorf("%s does not say %q", c.file, want)
			}
		}
		for _, other := range c.hasNot {
			if strings.Contains(svg, other) {
				t.Errorf("%s says %q", c.file, other)
			}
		}
	}
	for _, list := range [][]Frontier{nil, {{Name: "empty"}}, make([]Frontier, MaxFrontiers+1)} {
		if _, err := NewFrontier("", legend, list); err == nil {
			t.Errorf("%d frontiers without content were accepted", len(list))
		}
	}
}
