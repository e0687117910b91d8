package truth

import "github.com/sluice-serving/sluice/serving"

// Confidence returns how sure a variant is of its answer to an item of its app's n-th query: as measured of its answers
// (serving.Confidence). It is the same whenever it is asked. Queries that follow each other fill the bins evenly (a
// sequence of Weyl), so that runs do not differ by luck.
func Confidence(c *serving.Confidence, n uint64, item int32) float32 {
	const golden = 0x9e3779b97f4a7c15 // 2^64 over the golden ratio
	left := float64((n+uint64(c.Variant)<<40+uint64(item)<<20)*golden>>11) / (1 << 53)
	k := 0
	for ; k < len(c.Bins)-1 && left >= c.Bins[k].Share; k++ {
		left -= c.Bins[k].Share
	}
	return float32(c.Bins[k].From)
}
