package digits

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
)

// canvas is a square picture that is being drawn: size by size values, of ink at first and of grey at the end.
type canvas struct {
	size int
	v    []float32
}

// Letters is how many letters there are on average in a picture of the size served.
const Letters = 14

// Draw draws a square picture with digits, and with so many letters on average for the area of a picture of the size
// served. Training draws small pictures.
func Draw(rng *rand.Rand, size int, picture []float32, labels []int64, letters float32) {
	c := canvas{size, picture}
	c.render(rng, labels, letters)
}

// Set renders n pictures with labels drawn evenly, one after the other. Picture i depends on the seed and i alone.
func Set(seed uint64, n int) (pictures []uint8, labels []int64) {
	pictures, labels = make([]uint8, n*Pixels), make([]int64, n)
	drawAll(n, func(c *canvas, i int) {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		labels[i] = int64(rng.IntN(10))
		c.render(rng, labels[i:i+1], Letters)
		c.writeBytes(pictures[i*Pixels:])
	})
	return pictures, labels
}

// drawAll draws n pictures of the size served with f, on all cores.
func drawAll(n int, f func(c *canvas, i int)) {
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wg.Go(func() {
			c := &canvas{Size, make([]float32, Pixels)}
			for i := w; i < n; i += workers {
				f(c, i)
			}
		})
	}
	wg.Wait()
}

// writeBytes writes the picture as bytes.
func (c *canvas) writeBytes(to []uint8) {
	for j, v := range c.v {
		to[j] = uint8(v*255 + 0.5)
	}
}

func between(rng *rand.Rand, lo, hi float32) float32 { return lo + (hi-lo)*rng.Float32() }

func normal(rng *rand.Rand) float32 { return float32(rng.NormFloat64()) }

// render draws digits at random places, each in a random face, distorted, with strokes of random width and softness. It
// adds letters, stray strokes, uneven light and noise. Their number is proportional to the area, so that a small
// picture looks like a part of a large one; letters is the mean number of letters in a picture of the size served. It
// returns the digits' centres. If there is no room for a digit, that digit and those after it are left out.
func (c *canvas) render(rng *rand.Rand, labels []int64, letters float32) []place {
	all := glyphs()
	clear(c.v)
	const margin = 13
	places := make([]place, 0, len(labels))
	for _, label := range labels {
		digit := newHand(rng)
		found := false
		for tries := 0; tries < maxTries && !found; tries++ {
			digit.x, digit.y = between(rng, margin, float32(c.size-margin)),
				between(rng, margin, float32(c.size-margin))
			found = apart(places, digit.x, digit.y, clearance)
		}
		if !found {
			break
		}
		c.write(digit, all[rng.IntN(len(all))][label])
		places = append(places, place{digit.x, digit.y})
	}
	share := float32(c.size*c.size) / Pixels
	for range count(rng, letters*share) {
		h := newHand(rng)
		for {
			h.x, h.y = between(rng, -8, float32(c.size+8)), between(rng, -8, float32(c.size+8))
			if apart(places, h.x, h.y, 21) {
				break
			}
		}
		c.write(h, all[rng.IntN(len(all))][digitSigns+rng.IntN(len(characters)-digitSigns)])
	}
	for range count(rng, 28*share) {
		c.strayStroke(rng)
	}
	for range count(rng, 7*share) {
		c.erase(rng)
	}
	c.shade(rng)
	return places
}

// place is a point of a picture, in pixels.
type place struct{ x, y float32 }

const (
	// clearance is the least distance between the centres of two digits, in pixels. With it they do not touch.
	clearance = 34
	// maxTries bounds the search for room for a digit.
	maxTries = 50
)

// apart reports whether a point is farther than least pixels from all places.
func apart(places []place, x, y, least float32) bool {
	for _, p := range places {
		if dx, dy := x-p.x, y-p.y; dx*dx+dy*dy <= least*least {
			return false
		}
	}
	return true
}

// count draws a whole number between 0 and twice the mean.
func count(rng *rand.Rand, mean float32) int { return int(2*mean*rng.Float32() + rng.Float32()*0.999) }

// penStyle is one style of writing: a linear map and a smooth displacement from the picture to the glyph, and a pen.
type penStyle struct {
	x, y        float32 // the glyph's centre
	a, b, c, d  float32
	bend        [2][bends * bends]float32
	width, soft float32
	ink         float32
}

const (
	reach = 24 // pixels from its centre beyond which no glyph has ink
	bends = 7  // number of points across at which the displacement is drawn
)

func newHand(rng *rand.Rand) *penStyle {
	h := &penStyle{ink: between(rng, 0.75, 1)}
	turn := 0.2 * normal(rng)
	sx, sy := between(rng, 0.78, 1.22), between(rng, 0.78, 1.22)
	shear := 0.22 * normal(rng)
	sin, cos := float32(math.Sin(float64(turn))), float32(math.Cos(float64(turn)))
	h.a, h.b = sx*(cos+shear*sin), sx*(sin-shear*cos)
	h.c, h.d = -sy*sin, sy*cos
	strength := between(rng, 0.4, 1.5)
	for i := range h.bend {
		for j := range h.bend[i] {
			h.bend[i][j] = strength * normal(rng)
		}
	}
	h.width, h.soft = between(rng, -0.3, 1), between(rng, 0.8, 2.2)
	return h
}

// write adds a glyph to the picture. Where it has more ink than the picture, its ink counts.
func (c *canvas) write(h *penStyle, g *glyph) {
	const scale = float32(bends-1) / (2 * reach)
	for y := max(0, int(h.y)-reach+1); y < min(c.size, int(h.y)+reach); y++ {
		py := float32(y) - h.y
		fy := (py + reach) * scale
		iy := min(int(fy), bends-2)
		fy -= float32(iy)
		for x := max(0, int(h.x)-reach+1); x < min(c.size, int(h.x)+reach); x++ {
			px := float32(x) - h.x
			fx := (px + reach) * scale
			ix := min(int(fx), bends-2)
			fx -= float32(ix)
			qx, qy := px+bilinear(&h.bend[0], ix, iy, fx, fy), py+bilinear(&h.bend[1], ix, iy, fx, fy)
			dist := g.at(h.a*qx+h.b*qy, h.c*qx+h.d*qy) - h.width
			if v := h.ink * min(0.5-dist/h.soft, 1); v > c.v[y*c.size+x] {
				c.v[y*c.size+x] = v
			}
		}
	}
}

func bilinear(f *[bends * bends]float32, ix, iy int, fx, fy float32) float32 {
	i := iy*bends + ix
	top := f[i] + fx*(f[i+1]-f[i])
	low := f[i+bends] + fx*(f[i+bends+1]-f[i+bends])
	return top + fy*(low-top)
}

// strayStroke draws a straight stroke somewhere.
func (c *canvas) strayStroke(rng *rand.Rand) {
	x0, y0 := between(rng, 0, float32(c.size)), between(rng, 0, float32(c.size))
	angle, length := rng.Float64()*2*math.Pi, between(rng, 4, 18)
	vx, vy := float32(math.Cos(angle)), float32(math.Sin(angle))
	half, ink := between(rng, 0.2, 0.8), between(rng, 0.3, 0.95)
	for y := max(0, int(y0)-20); y < min(c.size, int(y0)+21); y++ {
		for x := max(0, int(x0)-20); x < min(c.size, int(x0)+21); x++ {
			px, py := float32(x)-x0, float32(y)-y0
			along := min(max(px*vx+py*vy, 0), length)
			ex, ey := px-along*vx, py-along*vy
			if sq := ex*ex + ey*ey; sq < 4 {
				v := ink * min(max(0.5+half-float32(math.Sqrt(float64(sq))), 0), 1)
				i := y*c.size + x
				c.v[i] = max(c.v[i], v)
			}
		}
	}
}

// erase removes the ink from a spot.
func (c *canvas) erase(rng *rand.Rand) {
	cx, cy := between(rng, 0, float32(c.size)), between(rng, 0, float32(c.size))
	rx, ry := between(rng, 1.5, 4), between(rng, 1.5, 4)
	for y := max(0, int(cy)-4); y < min(c.size, int(cy)+5); y++ {
		for x := max(0, int(cx)-4); x < min(c.size, int(cx)+5); x++ {
			ex, ey := (float32(x)-cx)/rx, (float32(y)-cy)/ry
			if ex*ex+ey*ey < 1 {
				c.v[y*c.size+x] *= 0.15
			}
		}
	}
}

// shade maps ink to grey under uneven light with little or much contrast, adds noise and keeps values between 0 and 1.
func (c *canvas) shade(rng *rand.Rand) {
	paper, contrast := between(rng, 0, 0.3), between(rng, 0.45, 0.85)
	slope := 0.002 * float32(c.size)
	gx, gy := slope*normal(rng), slope*normal(rng)
	noise := between(rng, 0.03, 0.14)
	n := 1 / float32(c.size-1)
	for y := range c.size {
		for x := range c.size {
			i := y*c.size + x
			lit := gx*(float32(x)*n-0.5) + gy*(float32(y)*n-0.5)
			c.v[i] = min(max(paper+lit+contrast*c.v[i]+noise*normal(rng), 0), 1)
		}
	}
}
