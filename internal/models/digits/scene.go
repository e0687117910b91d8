package digits

import (
	"math"
	"math/rand/v2"
)

// seedScenes separates scenes from pictures of the same seed.
const seedScenes = 0x2545f4914f6cdd1d

// Box is the size of the square that a digit of a scene lies in, in pixels.
const Box = 40

// Overlap is the intersection over union above which two boxes of a scene count as the same digit.
const Overlap = 0.2

// MaxDigits is the largest number of digits in a scene.
const MaxDigits = 12

// Scene is a picture with several digits.
type Scene struct {
	Picture []uint8 // Pixels of them
	Digits  []Digit
}

// Digit is one digit of a scene and the place of its centre, in pixels.
type Digit struct {
	Label int64
	X, Y  float32
}

// Scenes renders n scenes. count returns the number of digits of scene i; it is cut to MaxDigits, and digits without
// room are left out. Scene i depends on the seed, i and its count alone.
func Scenes(seed uint64, n int, count func(i int) int) []Scene {
	out := make([]Scene, n)
	drawAll(n, func(c *canvas, i int) {
		rng := rand.New(rand.NewPCG(seed^seedScenes, uint64(i)))
		labels := make([]int64, min(count(i), MaxDigits))
		for k := range labels {
			labels[k] = int64(rng.IntN(10))
		}
		s := &out[i]
		for k, p := range c.render(rng, labels, Letters) {
			s.Digits = append(s.Digits, Digit{labels[k], p.x, p.y})
		}
		s.Picture = make([]uint8, Pixels)
		c.writeBytes(s.Picture)
	})
	return out
}

// matchDistance is the largest distance from a digit's centre, in pixels, at which a detection counts for it. Readers
// are trained on digits that far off.
const matchDistance = 14

// Match pairs boxes with the digits of a scene. centres are those of the boxes, best box first. The result is by box
// the index of its digit in Digits, or -1.
func (s *Scene) Match(centres [][2]float32) []int {
	taken, out := make([]bool, len(s.Digits)), make([]int, len(centres))
	for i, c := range centres {
		out[i] = -1
		nearest := float64(matchDistance)
		for k, d := range s.Digits {
			if off := math.Hypot(float64(c[0]-d.X), float64(c[1]-d.Y)); !taken[k] && off <= nearest {
				out[i], nearest = k, off
			}
		}
		if out[i] >= 0 {
			taken[out[i]] = true
		}
	}
	return out
}
