package nn

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
