package plot

import (
	"bytes"
	"errors"
	"image/png"
	"strings"
	"testing"
)

func TestHeat(t *testing.T) {
	h := Heat{Title: "Map", Subtitle: "under it", XName: "x name", YName: "y name", X: []float64{0, 10, 20},
		Kinds: []string{"low", "high"}, Pale: "pale ones",
		Rows: [][]HeatCell{{{Kind: 0}, {Kind: 0}, {Kind: 1}}, {{Kind: 0, Pale: true, Text: "7"}, {Kind: 0}, {Kind: 1}}}}
	var a, b bytes.Buffer
	if err := errors.Join(h.PNG(&a), h.SVG(&b)); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&a)
	if err != nil {
		t.Fatal(err)
	}
	// Two kinds, one of them also pale, and white space have their shares of the picture.
	count := make(map[[3]uint32]int)
	for y := img.Bounds().Min.Y; y < img.Bounds().Max.Y; y++ {
		for x := img.Bounds().Min.X; x < img.Bounds().Max.X; x++ {
			r, g, b, _ := img.At(x, y).RGBA()
			count[[3]uint32{r >> 8, g >> 8, b >> 8}]++
		}
	}
	low, high := rampAt(0, 2), rampAt(1, 2)
	nl, nh := count[[3]uint32{uint32(low.R), uint32(low.G), uint32(low.B)}], count[[3]uint32{
		uint32(high.R), uint32(high.G), uint32(high.B),
	}]
	// Of six cells three are of the lower kind, one of them is pale in addition, and two are of the higher kind.
	if ratio := float64(nl) / float64(nh); ratio < 1.4 || ratio > 1.6 {
		t.Errorf("%d pixels of the lower kind and %d of the higher, want 3 to 2", nl, nh)
	}
	for _, text := range []string{"Map", "under it", "x name", "y name", "low", "high", "pale ones", ">7<"} {
		if !strings.Contains(b.String(), text) {
			t.Errorf("the drawing lacks %q", text)
		}
	}
	for name, bad := range map[string]Heat{
		"empty": {}, "short row": {X: []float64{0, 1}, Kinds: []string{"a"}, Rows: [][]HeatCell{{{}}}},
		"unknown kind": {X: []float64{0}, Kinds: []string{"a"}, Rows: [][]HeatCell{{{Kind: 1}}}},
	} {
		if bad.PNG(&a) == nil || bad.SVG(&b) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
