package digits

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
)

// Render draws a digit from 0 to 9: a random face, bent, with strokes of random width and softness, among fragments of
// neighbours, stray strokes, uneven light and noise. Values are from 0 (paper) to 1 (ink). The same state of rng gives the
// same image.
func Render(rng *rand.Rand, label int) [Pixels]float32 {
	var img [Pixels]float32
	render(rng, label, img[:])
	return img
}

// Set renders n images with labels drawn evenly, one after the other. Image i depends on the seed and i alone.
func Set(seed uint64, n int) (images []float32, labels []int64) {
	images, labels = make([]float32, n*Pixels), make([]int64, n)
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n; i += workers {
				rng := rand.New(rand.NewPCG(seed, uint64(i)))
				labels[i] = int64(rng.IntN(10))
				render(rng, int(labels[i]), images[i*Pixels:(i+1)*Pixels])
			}
		})
	}
	wg.Wait()
	return images, labels
}

func between(rng *rand.Rand, lo, hi float32) float32 { return lo + (hi-lo)*rng.Float32() }

func normal(rng *rand.Rand) float32 { return float32(rng.NormFloat64()) }

func render(rng *rand.Rand, label int, img []float32) {
	all := glyphs()
	clear(img)
	main := newHand(rng, 1)
	main.write(img, all[rng.IntN(len(all))][label])
	for range rng.IntN(3) { // fragments of neighbours that reach into the picture
		n := newHand(rng, 0.9)
		n.dx += between(rng, 17, 21) * float32(1-2*rng.IntN(2))
		n.dy += between(rng, -9, 9)
		n.write(img, all[rng.IntN(len(all))][rng.IntN(10)])
	}
	for range rng.IntN(3) {
		strayStroke(rng, img)
	}
	if rng.IntN(3) == 0 {
		erase(rng, img)
	}
	light(rng, img)
}

// hand is one way to write: a linear map and a smooth displacement from the picture to the glyph, and a pen.
type hand struct {
	a, b, c, d, dx, dy float32
	bend               [2][bends * bends]float32
	width, soft        float32
	ink                float32
}

// bends is the number of points across at which the displacement is drawn.
const bends = 5

func newHand(rng *rand.Rand, ink float32) *hand {
	h := &hand{ink: ink * between(rng, 0.75, 1)}
	turn := 0.2 * normal(rng)
	sx, sy := between(rng, 0.75, 1.25), between(rng, 0.8, 1.2)
	shear := 0.22 * normal(rng)
	sin, cos := float32(math.Sin(float64(turn))), float32(math.Cos(float64(turn)))
	h.a, h.b = sx*(cos+shear*sin), sx*(sin-shear*cos)
	h.c, h.d = -sy*sin, sy*cos
	h.dx, h.dy = 1.7*normal(rng), 1.7*normal(rng)
	strength := between(rng, 0.4, 1.5)
	for i := range h.bend {
		for j := range h.bend[i] {
			h.bend[i][j] = strength * normal(rng)
		}
	}
	h.width, h.soft = between(rng, -0.3, 1), between(rng, 0.8, 2.2)
	return h
}

// write adds a glyph to the picture; ink covers ink.
func (h *hand) write(img []float32, g *glyph) {
	const scale = float32(bends-1) / (Size - 1)
	for y := range Size {
		fy := float32(y) * scale
		iy := min(int(fy), bends-2)
		fy -= float32(iy)
		for x := range Size {
			fx := float32(x) * scale
			ix := min(int(fx), bends-2)
			fx -= float32(ix)
			px, py := float32(x)-(Size-1)/2.0-h.dx, float32(y)-(Size-1)/2.0-h.dy
			px += bilinear(&h.bend[0], ix, iy, fx, fy)
			py += bilinear(&h.bend[1], ix, iy, fx, fy)
			dist := g.at(h.a*px+h.b*py, h.c*px+h.d*py) - h.width
			v := h.ink * min(max(0.5-dist/h.soft, 0), 1)
			i := y*Size + x
			img[i] = max(img[i], v)
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
func strayStroke(rng *rand.Rand, img []float32) {
	x0, y0 := between(rng, 0, Size), between(rng, 0, Size)
	angle, length := rng.Float64()*2*math.Pi, between(rng, 4, 18)
	vx, vy := float32(math.Cos(angle)), float32(math.Sin(angle))
	half, ink := between(rng, 0.2, 0.8), between(rng, 0.3, 0.95)
	for y := range Size {
		for x := range Size {
			px, py := float32(x)-x0, float32(y)-y0
			along := min(max(px*vx+py*vy, 0), length)
			ex, ey := px-along*vx, py-along*vy
			if sq := ex*ex + ey*ey; sq < 4 {
				v := ink * min(max(0.5+half-float32(math.Sqrt(float64(sq))), 0), 1)
				i := y*Size + x
				img[i] = max(img[i], v)
			}
		}
	}
}

// erase wipes a band or a spot.
func erase(rng *rand.Rand, img []float32) {
	cx, cy := between(rng, 4, Size-4), between(rng, 4, Size-4)
	rx, ry := between(rng, 1.5, 4), between(rng, 1.5, 4)
	for y := range Size {
		for x := range Size {
			ex, ey := (float32(x)-cx)/rx, (float32(y)-cy)/ry
			if ex*ex+ey*ey < 1 {
				img[y*Size+x] *= 0.15
			}
		}
	}
}

// light maps ink to grey under uneven light with little or much contrast, adds noise and keeps values between 0 and 1.
func light(rng *rand.Rand, img []float32) {
	paper, contrast := between(rng, 0, 0.3), between(rng, 0.4, 0.85)
	gx, gy := 0.12*normal(rng), 0.12*normal(rng)
	noise := between(rng, 0.03, 0.16)
	for y := range Size {
		for x := range Size {
			i := y*Size + x
			slope := gx*(float32(x)/(Size-1)-0.5) + gy*(float32(y)/(Size-1)-0.5)
			img[i] = min(max(paper+slope+contrast*img[i]+noise*normal(rng), 0), 1)
		}
	}
}
