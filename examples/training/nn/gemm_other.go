//go:build !amd64

package nn

func block4x16(k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, add bool) {
	block4x16Go(k, a, lda, b, ldb, c, ldc, add)
}

var haveFMA, haveWide = false, false

func block8x32(int, []float32, int, []float32, int, []float32, int, bool) {}
