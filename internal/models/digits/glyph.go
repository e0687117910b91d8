package digits

import (
	"fmt"
	"image"
	"math"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// A glyph is stored as signed distances to its outline, on a grid finer than an image. From distances, strokes of any
// width and softness can be drawn after any distortion.
const (
	perPixel  = 3  // grid points to a pixel
	gridSize  = 96 // grid points across
	inkHeight = 20 // pixels a digit is high before distortion
)

// glyph holds distances in pixels, negative inside the strokes.
type glyph [gridSize * gridSize]float32

// characters are the digits, and letters that no distortion makes look like a digit.
const characters = "0123456789AEFHKMNPRTUVWXY"

const digitSigns = 10

// glyphs returns the glyphs by face and character. The fonts are embedded in the program, so an error in one is a bug
// and panics.
var glyphs = sync.OnceValue(func() [][len(characters)]*glyph {
	all := make([][len(characters)]*glyph, len(faces))
	var wg sync.WaitGroup
	for i, f := range faces {
		wg.Go(func() {
			for s, r := range characters {
				g, err := loadGlyph(f.data, r)
				if err != nil {
					panic(fmt.Sprintf("digits: font %s, %q: %v", f.name, r, err))
				}
				all[i][s] = g
			}
		})
	}
	wg.Wait()
	return all
})

func loadGlyph(data []byte, r rune) (*glyph, error) {
	f, err := opentype.Parse(data)
	if err != nil {
		return nil, err
	}
	const trial = 64
	mask, err := draw(f, r, trial)
	if err != nil {
		return nil, err
	}
	mask, err = draw(f, r, trial*inkHeight*perPixel/float64(mask.Rect.Dy()))
	if err != nil {
		return nil, err
	}
	var ink [gridSize * gridSize]bool
	offX, offY := (gridSize-mask.Rect.Dx())/2, (gridSize-mask.Rect.Dy())/2
	for y := range mask.Rect.Dy() {
		for x := range mask.Rect.Dx() {
			if px, py := x+offX, y+offY; px >= 0 && px < gridSize && py >= 0 && py < gridSize {
				ink[py*gridSize+px] = mask.AlphaAt(mask.Rect.Min.X+x, mask.Rect.Min.Y+y).A > 127
			}
		}
	}
	out, in := distances(&ink, true), distances(&ink, false)
	var g glyph
	for i := range g {
		g[i] = (out[i] - in[i]) / perPixel
	}
	return &g, nil
}

// draw rasterizes a rune at a size in points at 72 dpi and crops it to its ink.
func draw(f *opentype.Font, r rune, size float64) (*image.Alpha, error) {
	face, err := opentype.NewFace(f, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingNone})
	if err != nil {
		return nil, err
	}
	defer func() { _ = face.Close() }()
	_, mask, _, _, ok := face.Glyph(fixed.Point26_6{}, r)
	if !ok {
		return nil, fmt.Errorf("the font has no %q", r)
	}
	src, ok := mask.(*image.Alpha)
	if !ok {
		return nil, fmt.Errorf("the mask is a %T", mask)
	}
	box := image.Rectangle{}
	for y := range src.Rect.Dy() {
		for x := range src.Rect.Dx() {
			if src.AlphaAt(x, y).A > 127 {
				box = box.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	if box.Empty() {
		return nil, fmt.Errorf("the glyph of %q is empty", r)
	}
	cut := image.NewAlpha(image.Rect(0, 0, box.Dx(), box.Dy()))
	for y := range box.Dy() {
		for x := range box.Dx() {
			cut.SetAlpha(x, y, src.AlphaAt(box.Min.X+x, box.Min.Y+y))
		}
	}
	return cut, nil
}

// distances returns, for each grid point, the distance to the nearest point where ink equals want, in grid points: the
// exact transform by lower envelopes of parabolas, first down the columns, then along the rows (Felzenszwalb and
// Huttenlocher, 2012, section 2).
func distances(ink *[gridSize * gridSize]bool, want bool) []float32 {
	d := make([]float64, len(ink))
	for i, v := range ink {
		if v != want {
			d[i] = 1e9
		}
	}
	line, out := make([]float64, gridSize), make([]float64, gridSize)
	pass := func(at, step int) {
		for i := range line {
			line[i] = d[at+i*step]
		}
		envelope(line, out)
		for i, v := range out {
			d[at+i*step] = v
		}
	}
	for x := range gridSize {
		pass(x, gridSize)
	}
	for y := range gridSize {
		pass(y*gridSize, 1)
	}
	r := make([]float32, len(d))
	for i, v := range d {
		r[i] = float32(math.Sqrt(v))
	}
	return r
}

// envelope sets out[i] to the least over j of f[j] + (i-j)².
func envelope(f, out []float64) {
	n := len(f)
	v, z := make([]int, n), make([]float64, n+1)
	k := 0
	z[0], z[1] = math.Inf(-1), math.Inf(1)
	meet := func(p, q int) float64 {
		return (f[q] + float64(q*q) - f[p] - float64(p*p)) / float64(2*q-2*p)
	}
	for q := 1; q < n; q++ {
		s := meet(v[k], q)
		for s <= z[k] {
			k--
			s = meet(v[k], q)
		}
		k++
		v[k], z[k], z[k+1] = q, s, math.Inf(1)
	}
	k = 0
	for q := range n {
		for z[k+1] < float64(q) {
			k++
		}
		out[q] = float64((q-v[k])*(q-v[k])) + f[v[k]]
	}
}

// at returns the distance at a place, given in pixels from the glyph's centre. It interpolates bilinearly between grid
// points and returns a large distance beyond the grid.
func (g *glyph) at(x, y float32) float32 {
	const far = 10
	gx, gy := x*perPixel+gridSize/2-0.5, y*perPixel+gridSize/2-0.5
	if !(gx >= 0 && gy >= 0 && gx < gridSize-1 && gy < gridSize-1) {
		return far
	}
	ix, iy := int(gx), int(gy)
	fx, fy := gx-float32(ix), gy-float32(iy)
	i := iy*gridSize + ix
	top := g[i] + fx*(g[i+1]-g[i])
	low := g[i+gridSize] + fx*(g[i+gridSize+1]-g[i+gridSize])
	return top + fy*(low-top)
}
