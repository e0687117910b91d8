//go:build !amd64

package nn

func maxPairs(to, top, low []float32) { maxPairsGo(to, top, low) }

func copyRows(to, from []float32, rows, w, ld int) { copyRowsGo(to, from, rows, w, ld) }
