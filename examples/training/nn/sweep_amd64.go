package nn

//go:noescape
func dotsAVX(x, y *float32, blocks int) (sum, dot float32)

//go:noescape
func shiftAVX(to, from *float32, scale, shift float32, blocks int)

//go:noescape
func combineAVX(d, z *float32, a, b, c float32, blocks int)

//go:noescape
func rectifyAVX(y, dy *float32, blocks int)

// avxBlocks is how many blocks of 8 elements the fast forms take.
func avxBlocks(n int) int {
	if !haveFMA {
		return 0
	}
	return n / 8
}

func dots(x, y []float32) (sum, dot float32) {
	n := avxBlocks(len(x))
	if n > 0 {
		sum, dot = dotsAVX(&x[0], &y[:len(x)][0], n)
	}
	s, d := dotsGo(x[8*n:], y[8*n:])
	return sum + s, dot + d
}

func shift(to, from []float32, scale, by float32) {
	n := avxBlocks(len(to))
	if n > 0 {
		shiftAVX(&to[0], &from[:len(to)][0], scale, by, n)
	}
	shiftGo(to[8*n:], from[8*n:], scale, by)
}

func combine(d, z []float32, a, b, c float32) {
	n := avxBlocks(len(d))
	if n > 0 {
		combineAVX(&d[0], &z[:len(d)][0], a, b, c, n)
	}
	combineGo(d[8*n:], z[8*n:], a, b, c)
}

func rectify(y, dy []float32) {
	n := avxBlocks(len(y))
	if n > 0 {
		rectifyAVX(&y[0], &dy[:len(y)][0], n)
	}
	rectifyGo(y[8*n:], dy[8*n:])
}
