package nn

// gemm computes C = A·B, or C += A·B, for row-major matrices: A is m by k with lda elements from row to row, B is k by n,
// C is m by n. Blocks of 4 rows and 16 columns take the fast path, so callers pad what they can to these.
func gemm(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, add bool) {
	if m <= 0 || n <= 0 || k <= 0 {
		return
	}
	// The assembly knows no slice bounds: fail here rather than there.
	_, _, _ = a[(m-1)*lda+k-1], b[(k-1)*ldb+n-1], c[(m-1)*ldc+n-1]
	m4, n16 := m&^3, n&^15
	for j := 0; j < n16; j += 16 {
		for i := 0; i < m4; i += 4 {
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

// edge is gemm for the blocks left over, row by row.
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

// block4x16Go is the portable form of block4x16: four rows at a time, so that each element of B is loaded once for four
// multiplications.
func block4x16Go(k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, add bool) {
	var r0, r1, r2, r3 [16]float32
	for p := range k {
		v0, v1, v2, v3 := a[p], a[lda+p], a[2*lda+p], a[3*lda+p]
		row := (*[16]float32)(b[p*ldb:])
		for j, w := range row {
			r0[j] += v0 * w
			r1[j] += v1 * w
			r2[j] += v2 * w
			r3[j] += v3 * w
		}
	}
	for i, r := range []*[16]float32{&r0, &r1, &r2, &r3} {
		to := (*[16]float32)(c[i*ldc:])
		for j, v := range r {
			if add {
				v += to[j]
			}
			to[j] = v
		}
	}
}
