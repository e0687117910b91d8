package nn

// gemm computes C = A·B, or C += A·B, for row-major matrices: A is m by k with lda elements from row to row, B is k by
// n, C is m by n. Blocks of 4 rows and 16 columns take a fast path, so callers pad matrices to them where they can.
// With wide registers blocks of 8 by 32 take a faster one. Both add up an element's products in the same order with one
// rounding each, so their results are equal.
func gemm(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, add bool) {
	if m <= 0 || n <= 0 || k <= 0 {
		return
	}
	// The assembly does not check slice bounds, so check them here.
	_, _, _ = a[(m-1)*lda+k-1], b[(k-1)*ldb+n-1], c[(m-1)*ldc+n-1]
	m4, n16 := m&^3, n&^15
	m8, n32 := 0, 0
	if haveWide {
		m8, n32 = m&^7, n&^31
	}
	for j := 0; j < n32; j += 32 {
		for i := 0; i < m8; i += 8 {
			block8x32(k, a[i*lda:], lda, b[j:], ldb, c[i*ldc+j:], ldc, add)
		}
	}
	for j := 0; j < n16; j += 16 {
		from := m8
		if j >= n32 {
			from = 0
		}
		for i := from; i < m4; i += 4 {
			block4x16(k, a[i*lda:], lda, b[j:], ldb, c[i*ldc+j:], ldc, add)
		}
	}
	if n16 < n {
		edge(m4, n-n16, k, a, lda, b[n16:], ldb, c[n16:], ldc, add)
	}
	if m4 < m {
		edge(m-m4, n, k, a[m4*lda:], lda, b, ldb, c[m4*ldc:], ldc, add)
	}
}

// Reproducible reports whether this processor rounds as others with AVX2 and FMA do: training gives the same bytes on
// them.
func Reproducible() bool { return haveFMA }

// edge is gemm for the remaining blocks, row by row.
func edge(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, add bool) {
	for i := range m {
		row := c[i*ldc : i*ldc+n]
		if !add {
			clear(row)
		}
		for p := range k {
			v := a[i*lda+p]
			if v == 0 {
				continue
			}
			for j, w := range b[p*ldb : p*ldb+n] {
				row[j] += v * w
			}
		}
	}
}

// block4x16Go is the portable form of block4x16: it works on 2 by 4 elements at a time, which fit into registers.
func block4x16Go(k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, add bool) {
	for i := 0; i < 4; i += 2 {
		r0, r1 := a[i*lda:i*lda+k], a[(i+1)*lda:(i+1)*lda+k]
		for j := 0; j < 16; j += 4 {
			var s00, s01, s02, s03, s10, s11, s12, s13 float32
			at := j
			for p, u := range r0 {
				v, w := r1[p], (*[4]float32)(b[at:])
				s00 += u * w[0]
				s01 += u * w[1]
				s02 += u * w[2]
				s03 += u * w[3]
				s10 += v * w[0]
				s11 += v * w[1]
				s12 += v * w[2]
				s13 += v * w[3]
				at += ldb
			}
			c0, c1 := (*[4]float32)(c[i*ldc+j:]), (*[4]float32)(c[(i+1)*ldc+j:])
			if add {
				s00, s01, s02, s03 = s00+c0[0], s01+c0[1], s02+c0[2], s03+c0[3]
				s10, s11, s12, s13 = s10+c1[0], s11+c1[1], s12+c1[2], s13+c1[3]
			}
			*c0, *c1 = [4]float32{s00, s01, s02, s03}, [4]float32{s10, s11, s12, s13}
		}
	}
}
