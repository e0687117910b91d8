package monitor

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Constants of ratios. Windows are in buckets of a tenth of a second.
const (
	ratioMean            = 50  // five seconds: the window of the mean that plans are made with
	ratioRiseWindow      = 20  // the longest window of newest buckets in which a rise is looked for
	ratioFallDelay       = 100 // ten seconds: how long a fall has to last
	ratioRing            = 64  // at least ratioMean + 1
	levelRing            = 128 // at least ratioFallDelay + 1
	ratioMinObservations = 3   // fewest observations of a window
	ratioSigma           = 4.5 // standard deviations of a change: high, because many windows are tested
	highSigma            = 2   // standard deviations by which the highest of several means is above the last by chance
	// spread is the least relative deviation that run times are taken to have.
	spread = 0.1
)

// sums are sums over observations (w, y). The ratio of y to w is followed.
type sums struct {
	n                int
	w, y, ww, wy, yy float64
}

func (s *sums) add(o *sums) {
	s.n += o.n
	s.w += o.w
	s.y += o.y
	s.ww += o.ww
	s.wy += o.wy
	s.yy += o.yy
}

func (s *sums) less(o *sums) {
	s.n -= o.n
	s.w -= o.w
	s.y -= o.y
	s.ww -= o.ww
	s.wy -= o.wy
	s.yy -= o.yy
}

func (s *sums) ratio() float64 { return s.y / s.w }

// unit is the variance of y per unit of w: a sum of y over w has the variance unit times w.
func (s *sums) unit() float64 {
	if s.n < 2 {
		return 0
	}
	r := s.ratio()
	return max(s.yy-2*r*s.wy+r*r*s.ww, 0) / s.w * float64(s.n) / float64(s.n-1)
}

// level is a ratio at the end of a bucket, with its standard error. n is 0 where too little was seen.
type level struct {
	n            int
	w            float64 // sum of w over the window of mean
	at, mean     float64
	err, meanErr float64 // of at and of mean
}

// ratio follows the ratio of two sums over time. It rises as soon as the newest observations are above the mean by more
// than chance, and falls once none in the last ratioFallDelay buckets was. It is small enough for every edge and stage,
// and allocates nothing.
type ratio struct {
	// counts is set when y is a count, whose variance is at least that of a Poisson count. Otherwise y has at least the
	// relative deviation spread.
	counts  bool
	newest  serving.Time // number of the newest bucket
	buckets [ratioRing]sums
	levels  [levelRing]level
}

func (r *ratio) add(now serving.Time, w, y float64) {
	if !(w > 0 && y >= 0) || math.IsInf(w, 0) || math.IsInf(y, 0) {
		return
	}
	r.advance(now)
	r.buckets[r.newest%ratioRing].add(&sums{1, w, y, w * w, w * y, y * y})
}

// advance ends the buckets before that of now.
func (r *ratio) advance(now serving.Time) {
	b := now / width
	for k := max(r.newest, b-levelRing); k < b; k++ {
		if k-r.newest <= ratioMean {
			r.levels[k%levelRing] = r.level(k)
		} else {
			r.levels[k%levelRing] = level{}
		}
		r.buckets[(k+1)%ratioRing] = sums{}
	}
	r.newest = max(r.newest, b)
}

// level is the ratio at the end of bucket k: the mean, or the ratio of the newest observations where it is clearly
// above that of the earlier ones.
func (r *ratio) level(k serving.Time) level {
	var mean, some sums
	for j := max(k-ratioMean+1, 0); j <= k; j++ {
		mean.add(&r.buckets[j%ratioRing])
	}
	if mean.n < ratioMinObservations {
		return level{}
	}
	m := mean.ratio()
	out := level{n: mean.n, w: mean.w, at: m, mean: m, meanErr: math.Sqrt(r.unit(&mean, &mean) / mean.w)}
	out.err = out.meanErr
	for j := k; j >= max(k-ratioRiseWindow+1, 0); j-- {
		some.add(&r.buckets[j%ratioRing])
		before := mean
		before.less(&some)
		if some.n < ratioMinObservations || before.n < ratioMinObservations {
			continue
		}
		x, e := some.ratio(), math.Sqrt(r.unit(&some, &before)*(1/some.w+1/before.w))
		if x > out.at && x-before.ratio() > ratioSigma*e {
			out.at, out.err = x, e
		}
	}
	return out
}

// unit is the variance of y per unit of w that tests allow for: the largest of the two samples' and of the least by
// chance.
func (r *ratio) unit(some, others *sums) float64 {
	high := max(some.ratio(), others.ratio())
	chance := high
	if !r.counts {
		chance = spread * spread * high * high * some.ww / some.w
	}
	return max(chance, some.unit(), others.unit())
}

// last is the level at the end of the last bucket.
func (r *ratio) last() level {
	if r.newest == 0 {
		return level{}
	}
	return r.levels[(r.newest-1)%levelRing]
}

// value returns the ratio to plan with: the last mean, or a higher one of the last ratioFallDelay buckets. That is the
// highest level clearly above its mean, or the highest mean where that exceeds the last by more than chance. settled
// reports whether the result is the last mean and was seen for half of the time at least; known, whether there is any
// observation.
func (r *ratio) value(now serving.Time) (x float64, settled, known bool) {
	jump, high, last, seen := r.levelsInDelay(now)
	if high.mean-last.mean > highSigma*math.Hypot(high.meanErr, last.meanErr) {
		jump = max(jump, high.mean)
	}
	if jump > last.mean {
		return jump, false, true
	}
	return last.mean, 2*seen >= ratioFallDelay, seen > 0
}

// levelsInDelay returns, of the levels of the last ratioFallDelay buckets, the highest above its mean, the one with the
// highest mean, the last, and their number.
func (r *ratio) levelsInDelay(now serving.Time) (jump float64, high, last level, seen int) {
	r.advance(now)
	for k := max(r.newest-ratioFallDelay, 0); k < r.newest; k++ {
		l := &r.levels[k%levelRing]
		if l.n == 0 {
			continue
		}
		if l.at > l.mean {
			jump = max(jump, l.at)
		}
		if seen++; seen == 1 || l.mean > high.mean {
			high = *l
		}
		last = *l
	}
	return jump, high, last, seen
}

// silent reports whether nothing was seen for ratioFallDelay buckets.
func (r *ratio) silent(now serving.Time) bool {
	_, _, known := r.value(now)
	return !known
}

// changed reports whether the ratio differs from planned: above it by more than chance now, or below it for
// ratioFallDelay buckets. A relative difference below least is no change.
func (r *ratio) changed(now serving.Time, planned, least float64) bool {
	r.advance(now)
	if l := r.last(); l.n > 0 && l.at > planned*(1+least) && l.at-planned > ratioSigma*l.err {
		return true
	}
	if r.risen(planned, least*lastingShare) {
		return true
	}
	x, settled, _ := r.value(now)
	if !settled || x >= planned/(1+least) {
		return false
	}
	_, _, last, _ := r.levelsInDelay(now)
	err := last.meanErr
	if r.counts {
		err = max(err, math.Sqrt(planned/last.w)) // a sum of 0 has no variance of its own
	}
	return planned-x > ratioSigma*err
}

// lastingShare is the part of the least change that counts as a change where the mean was above the planned ratio by as
// much, and by more than chance, for ratioMean buckets. A small but lasting lack of capacity is a lack all the same.
const (
	lastingShare = 0.4
	lastingSigma = 2.5
)

// risen reports whether the mean was above planned for ratioMean buckets, by more than the part by and by more than
// chance.
func (r *ratio) risen(planned, by float64) bool {
	seen := 0
	for k := max(r.newest-ratioMean, 0); k < r.newest; k++ {
		if l := &r.levels[k%levelRing]; l.n > 0 {
			if seen++; l.mean <= planned*(1+by) || l.mean-planned <= lastingSigma*l.meanErr {
				return false
			}
		}
	}
	return 2*seen > ratioMean
}

// FallDelay is how long a factor has to be lower before plans are made with a lower one.
const FallDelay = time.Duration(ratioFallDelay * width)
