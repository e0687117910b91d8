//go:build !amd64

package nn

func dots(x, y []float32) (sum, dot float32) { return dotsGo(x, y) }

func shift(to, from []float32, scale, by float32) { shiftGo(to, from, scale, by) }

func combine(d, z []float32, a, b, c float32) { combineGo(d, z, a, b, c) }

func rectify(y, dy []float32) { rectifyGo(y, dy) }
