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

// maxPairsAVX is maxPairsGo for blocks of 8 elements of to.
//
//go:noescape
func maxPairsAVX(to, top, low *float32, blocks int)

func maxPairs(to, top, low []float32) {
	blocks := 0
	if haveFMA {
		blocks = len(to) / 8
	}
	if blocks > 0 {
		maxPairsAVX(&to[0], &top[:16*blocks][0], &low[:16*blocks][0], blocks)
	}
	maxPairsGo(to[8*blocks:], top[16*blocks:], low[16*blocks:])
}

// copyRowsAVX is copyRowsGo for rows of a multiple of 8 elements, without a call of memmove for each short row.
//
//go:noescape
func copyRowsAVX(to, from *float32, rows, blocks, ld int)

func copyRows(to, from []float32, rows, w, ld int) {
	if !haveFMA || w%8 != 0 || rows == 0 || w == 0 {
		copyRowsGo(to, from, rows, w, ld)
		return
	}
	copyRowsAVX(&to[:rows*w][0], &from[:(rows-1)*ld+w][0], rows, w/8, 4*ld)
}
