package profile

import (
	"math"

	"github.com/sluice-serving/sluice/serving"
)

// anchor is a size and its latency.
// took is in nanoseconds
type anchor struct{ items, took float64 }

// chooseAnchors picks the sizes that a curve is drawn through: all seen sizes, or from each group of neighbours the one
// seen most often.
func (l *Learned) chooseAnchors(o *observed) {
	l.points = l.points[:0]
	seen := 0
	for _, r := range o.rings {
		if r != nil {
			seen++
		}
	}
	groups := min(seen, maxAnchors)
	rank, best := 0, -1
	for k, r := range o.rings {
		if r == nil {
			continue
		}
		if best < 0 || r.n > o.rings[best].n {
			best = k
		}
		rank++
		if rank*groups/seen > len(l.points) {
			l.points = append(l.points, anchor{float64(largestIn(best)), o.rings[best].median})
			best = -1
		}
	}
}

// curve is latency in nanoseconds by size: base + item*items, where items count up to knee and up to reach, and
// proportional to the items below from; or the prior's latency times scale.
type curve struct {
	base, item, knee float64
	from, reach      int
	prior            Profile
	v                serving.VariantID
	d                serving.DeviceTypeID
	concurrency      int
	scale            float64
}

// at returns the latency of a size.
func (c *curve) at(items int) float64 {
	if c.prior != nil {
		return max(float64(c.prior.Latency(c.v, c.d, items, c.concurrency))*c.scale, 1)
	}
	at, part := min(items, c.reach), 1.0
	if at < c.from {
		at, part = c.from, float64(at)/float64(c.from)
	}
	return max((c.base+c.item*min(float64(at), c.knee))*part, 1)
}

// fitLine draws a line through the anchors with the median of the slopes between them (Theil 1950, Sen 1968). A fourth
// of bad anchors cannot bend it. Neither the base nor the slope is negative. While no two sizes are far enough apart to
// have a slope, it is the lowest curve that one point allows: proportional below the point, constant above.
func (l *Learned) fitLine() curve {
	l.slopes = l.slopes[:0]
	for i := range l.points {
		for j := range i {
			if a, b := l.points[j], l.points[i]; b.items >= minSizeRatio*a.items {
				l.slopes = append(l.slopes, (b.took-a.took)/(b.items-a.items))
			}
		}
	}
	if len(l.slopes) > 0 {
		if item := median(l.slopes); item > 0 {
			base := l.medianOver(func(p anchor) float64 { return p.took - item*p.items })
			if base >= 0 {
				return curve{base: base, item: item, knee: math.Inf(1)}
			}
			return curve{item: l.medianOver(func(p anchor) float64 { return p.took / p.items }), knee: math.Inf(1)}
		}
		return curve{base: l.medianOver(func(p anchor) float64 { return p.took })}
	}
	items := l.medianOver(func(p anchor) float64 { return p.items })
	return curve{item: l.medianOver(func(p anchor) float64 { return p.took }) / items, knee: items}
}

// scalePrior returns the prior scaled by the median ratio of the anchors to it.
func (l *Learned) scalePrior(v serving.VariantID, d serving.DeviceTypeID, concurrency int) curve {
	c := curve{prior: l.prior, v: v, d: d, concurrency: concurrency, scale: 1}
	most := l.spec.Variants[v].MaxBatch
	c.scale = l.medianOver(func(p anchor) float64 { return p.took / c.at(min(int(p.items), most)) })
	return c
}

// medianOver returns the median of f over the anchors.
func (l *Learned) medianOver(f func(anchor) float64) float64 {
	l.scratch = l.scratch[:0]
	for _, p := range l.points {
		l.scratch = append(l.scratch, f(p))
	}
	return median(l.scratch)
}

// median returns the middle element of x, the lower of two. It reorders x (quickselect, expected O(len(x))).
func median(x []float64) float64 {
	k := (len(x) - 1) / 2
	for lo, hi := 0, len(x)-1; lo < hi; {
		pivot, i, j := x[(lo+hi)/2], lo, hi
		for i <= j {
			for x[i] < pivot {
				i++
			}
			for x[j] > pivot {
				j--
			}
			if i <= j {
				x[i], x[j] = x[j], x[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case k <= j:
			hi = j
		case k >= i:
			lo = i
		default:
			return x[k]
		}
	}
	return x[k]
}
