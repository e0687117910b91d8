package digits

import "math/rand/v2"

// Box is the size of the square that a digit of a scene lies in, in pixels.
const Box = 40

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
		for k, p := range c.render(rng, labels, letters) {
			s.Digits = append(s.Digits, Digit{labels[k], p.x, p.y})
		}
		s.Picture = make([]uint8, Pixels)
		c.writeBytes(s.Picture)
	})
	return out
}
