package nn

import "golang.org/x/sys/cpu"

var (
	haveFMA  = cpu.X86.HasAVX2 && cpu.X86.HasFMA
	haveWide = haveFMA && cpu.X86.HasAVX512F
)

// block8x32AVX512 is block4x16AVX for 8 rows and 32 columns.
//
//go:noescape
func block8x32AVX512(k int, a *float32, lda int, b *float32, ldb int, c *float32, ldc int, add bool)

func block8x32(k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, add bool) {
	block8x32AVX512(k, &a[0], 4*lda, &b[0], 4*ldb, &c[0], 4*ldc, add)
}

// block4x16AVX computes 4 rows and 16 columns of C from pointers to the blocks' first elements; strides are in bytes.
//
//go:noescape
func block4x16AVX(k int, a *float32, lda int, b *float32, ldb int, c *float32, ldc int, add bool)

func block4x16(k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, add bool) {
	if !haveFMA {
		block4x16Go(k, a, lda, b, ldb, c, ldc, add)
		return
	}
	block4x16AVX(k, &a[0], 4*lda, &b[0], 4*ldb, &c[0], 4*ldc, add)
}
