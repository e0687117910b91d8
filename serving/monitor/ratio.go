package monitor

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Of ratios: their windows, in buckets of a tenth of a second.
const (
	ratioMean  = 50  // the mean that is planned with: five seconds
	ratioLook  = 20  // a change shows in the newest of these: as few as hold enough
	ratioHold  = 100 // a fall has to last for so long: ten seconds
	ratioRing  = 64  // at least ratioMean + 1
	levelRing  = 128 // at least ratioHold + 1
	ratioLeast = 3   // fewer observations say nothing
	ratioSigma = 4.5 // standard deviations that are not yet a change: many looks are taken, at windows of many lengths
	highSigma  = 2   // by which the highest of several is above their mean without saying anything
	// spread is the deviation of a run time, as a part of it, that is always allowed for.
	spread = 0.1
)

// sums are of observations (w, y) whose ratio y to w is followed.
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

// unit is the variance of y for each w: that of a sum of y over w is unit times w.
func (s *sums) unit() float64 {
	if s.n < 2 {
		return 0
	}
	r := s.ratio()
	return max(s.yy-2*r*s.wy+r*r*s.ww, 0) / s.w * float64(s.n) / float64(s.n-1)
}

// level is what a ratio was at the end of a bucket, with its standard error; n is 0 where too little was seen.
type level struct {
	n            int
	w            float64 // of what mean is the mean of
	at, mean     float64
	err, meanErr float64 // of at and of mean
}

// ratio follows the ratio of two sums over time: it rises as soon as the newest observations are above the mean by more
// than chance, and falls once nothing in its hold was. It is small enough to be kept for every edge and stage, and
// allocates nothing.
type ratio struct {
	// counts tells that y counts things, so that chance is that of a count at least; otherwise it is a spread of every
	// observation.
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

// level is the ratio at the end of bucket k: the mean, or what the newest observations have where that is clearly above
// what was before them.
func (r *ratio) level(k serving.Time) level {
	var mean, some sums
	for j := max(k-ratioMean+1, 0); j <= k; j++ {
		mean.add(&r.buckets[j%ratioRing])
	}
	if mean.n < ratioLeast {
		return level{}
	}
	m := mean.ratio()
	out := level{n: mean.n, w: mean.w, at: m, mean: m, meanErr: math.Sqrt(r.unit(&mean, &mean) / mean.w)}
	out.err = out.meanErr
	for j := k; j >= max(k-ratioLook+1, 0); j-- {
		some.add(&r.buckets[j%ratioRing])
		before := mean
		before.less(&some)
		if some.n < ratioLeast || before.n < ratioLeast {
			continue
		}
		x, e := some.ratio(), math.Sqrt(r.unit(&some, &before)*(1/some.w+1/before.w))
		if x > out.at && x-before.ratio() > ratioSigma*e {
			out.at, out.err = x, e
		}
	}
	return out
}

// unit is the variance of y for each w that is allowed for: how some vary, how others do, and what chance brings in any
// case.
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

// value is the ratio to plan with: the mean; or, if it is more, the highest that was clearly above it at a time of the
// hold, or the highest mean of the hold where that was higher by more than the highest of several is by chance. settled
// tells that it is the mean and has been seen for at least half of the hold, known that it was seen at all.
func (r *ratio) value(now serving.Time) (x float64, settled, known bool) {
	jump, high, last, seen := r.held(now)
	if high.mean-last.mean > highSigma*math.Hypot(high.meanErr, last.meanErr) {
		jump = max(jump, high.mean)
	}
	if jump > last.mean {
		return jump, false, true
	}
	return last.mean, 2*seen >= ratioHold, seen > 0
}

// held are, of the levels in the hold, the highest that was above its mean, that with the highest mean, the last, and
// how many there are.
func (r *ratio) held(now serving.Time) (jump float64, high, last level, seen int) {
	r.advance(now)
	for k := max(r.newest-ratioHold, 0); k < r.newest; k++ {
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

// silent tells whether nothing was seen for all of the hold.
func (r *ratio) silent(now serving.Time) bool {
	_, _, known := r.value(now)
	return !known
}

// changed tells whether the ratio is no longer what was planned with: above by more than chance now, or below for as
// long as the hold. A change of a smaller part than least is none.
func (r *ratio) changed(now serving.Time, planned, least float64) bool {
	r.advance(now)
	if l := r.last(); l.n > 0 && l.at > planned*(1+least) && l.at-planned > ratioSigma*l.err {
		return true
	}
	if r.risen(planned, least*lasting) {
		return true
	}
	x, settled, _ := r.value(now)
	if !settled || x >= planned/(1+least) {
		return false
	}
	_, _, last, _ := r.held(now)
	err := last.meanErr
	if r.counts {
		err = max(err, math.Sqrt(planned/last.w)) // nothing sent at all varies by nothing
	}
	return planned-x > ratioSigma*err
}

// lasting is the part of the least change that is one, too, where the mean was above by as much, and by more than
// chance, all the time for as long as a mean is taken: what was planned with was seen for a moment only, and too little
// stays too little.
const (
	lasting      = 0.4
	lastingSigma = 2.5
)

// risen tells whether the mean was above what was planned with all the time, by more than a part of it and than chance.
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

// Hold is how long a factor has to be lower before plans are made with less.
const Hold = time.Duration(ratioHold * width)
