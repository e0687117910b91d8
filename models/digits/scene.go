package digits

import "math/rand/v2"

// Box is the size of the square that a digit of a scene lies in, in pixels.
const Box = 40

// MostDigits is how many digits there are at most in a scene.
const MostDigits = 12

// Scene is a picture with several digits.
type Scene struct {
	Picture []uint8 // Pixels of them
	Digits  []Digit
}

// Digit is one digit of a scene and where its centre lies, in pixels.
type Digit struct {
	Label int64
	X, Y  float32
}

// Scenes renders n scenes with as many digits each as count says, up to MostDigits and as far as there is room. Scene i
// depends on the seed, i and its count alone.
func Scenes(seed uint64, n int, count func(i int) int) []Scene {
	out := make([]Scene, n)
	drawAll(n, func(c *canvas, i int) {
		rng := rand.New(rand.NewPCG(seed^seedScenes, uint64(i)))
		labels := make([]int64, min(count(i), MostDigits))
		for k := range labels {
			labels[k] = int64(rng.IntN(10))
		}
		s := &out[i]
		for k, p := range c.render(rng, labels, letters) {
			s.Digits = append(s.Digits, Digit{labels[k], p.x, p.y})
		}
		s.Picture = make([]uint8, Pixels)
		c.levels(s.Picture)
	})
	return out
}
