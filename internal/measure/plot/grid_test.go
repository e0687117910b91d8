package plot

import (
	"bytes"
	"errors"
	"image/png"
	"math"
	"strings"
	"testing"
)

func TestGrid(t *testing.T) {
	g := Grid{
		Title: "Table", Subtitle: "under it", Rows: []string{"first", "second"}, Columns: []string{"a", "b", "c"},
		Low: 0, High: 100, Empty: "refused",
		Cells: [][]GridCell{
			{{Value: 0, Text: "0"}, {Value: 100, Text: "100"}, {Value: math.NaN()}},
			{{Value: 100, Text: "99", Marked: true}, {Value: 140}, {Value: -3}},
		},
	}
	var a, b bytes.Buffer
	if err := errors.Join(g.PNG(&a), g.SVG(&b)); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&a)
	if err != nil {
		t.Fatal(err)
	}
	count := make(map[[3]uint32]int)
	for y := img.Bounds().Min.Y; y < img.Bounds().Max.Y; y++ {
		for x := img.Bounds().Min.X; x < img.Bounds().Max.X; x++ {
			r, g, b, _ := img.At(x, y).RGBA()
			count[[3]uint32{r >> 8, g >> 8, b >> 8}]++
		}
	}
	low, high := rampAt(0, 2), rampAt(1, 2)
	nl := count[[3]uint32{uint32(low.R), uint32(low.G), uint32(low.B)}]
	nh := count[[3]uint32{uint32(high.R), uint32(high.G), uint32(high.B)}]
	// Two cells are of the lowest value and three of the highest; their texts and a frame take some of it.
	if ratio := float64(nh) / float64(nl); ratio < 1.2 || ratio > 1.7 {
		t.Errorf("%d pixels of the highest colour and %d of the lowest, want about 3 to 2", nh, nl)
	}
	for _, text := range []string{"Table", "under it", "first", "second", "refused", ">99<", ">100<"} {
		if !strings.Contains(b.String(), text) {
			t.Errorf("the drawing lacks %q", text)
		}
	}
	for name, bad := range map[string]Grid{
		"empty":     {},
		"short row": {Rows: []string{"a"}, Columns: []string{"b", "c"}, Cells: [][]GridCell{{{}}}, High: 1},
		"no rows":   {Rows: []string{"a"}, Columns: []string{"b"}, High: 1},
		"no scale":  {Rows: []string{"a"}, Columns: []string{"b"}, Cells: [][]GridCell{{{}}}},
	} {
		if bad.PNG(&a) == nil || bad.SVG(&b) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
