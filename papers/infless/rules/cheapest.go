package rules

import (
	"cmp"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/histogram"
	"github.com/sluice-serving/sluice/serving"
)

// ColdPrice is the default price of a cold start: the idle time of an instance that costs as much.
const ColdPrice = 2 * time.Hour

// Cheapest keeps an app warm in the span of its idle time with the least expected cost. A cold start costs as much as
// an instance that idles for Price. No percentile has to be chosen, and an app that is unlikely to be called soon is
// not kept. The span begins at once, unless a later one is expected to cost a tenth less. A later one pays for calls at
// regular intervals.
//
// The expectation is over the idle times of the last week. Those of the last day count four times and those of the last
// hour fourteen times, so that both a daily period and a burst show. A few prior idle times are added, half of them
// longer than Price. With little data the span is thus about as long as Price, which costs at most twice the optimum in
// hindsight (the rent-or-buy rule).
type Cheapest struct {
	Price time.Duration // 0 means ColdPrice

	seen  [len(lookbacks)]*histogram.Sliding
	gain  [binCount]float64 // of being warm in a minute, in minutes of idle time
	spans [1]Span
}

// lookbacks are the windows that Cheapest counts over, and the weight of an idle time in each.
var lookbacks = [...]struct {
	tracked time.Duration
	slices  int
	weight  float64
}{{7 * 24 * time.Hour, 14, 1}, {longTracked, 24, 3}, {shortTracked, 12, 10}}

const (
	// priorCount is the weight of the prior idle times.
	priorCount = 4
	// laterSpanCost is the largest cost of a later span that is taken, relative to the cost of the best span that
	// begins at once.
	laterSpanCost = 0.9
)

// NewCheapest returns the policy.
func NewCheapest(price time.Duration) *Cheapest {
	c := &Cheapest{Price: price}
	for k, l := range lookbacks {
		c.seen[k] = newIdle(l.tracked, l.slices)
	}
	return c
}

// Name implements KeepAlive.
func (*Cheapest) Name() string { return "cheapest" }

// Idled implements KeepAlive.
func (c *Cheapest) Idled(now serving.Time, idle time.Duration) {
	for _, h := range c.seen {
		h.Add(int64(now), int64(idle))
	}
}

// Warm implements KeepAlive.
func (c *Cheapest) Warm(now serving.Time) []Span {
	price := float64(cmp.Or(c.Price, ColdPrice)) / float64(binWidth)
	left := float64(priorCount)
	for k, h := range c.seen {
		h.Advance(int64(now))
		left += lookbacks[k].weight * float64(h.Inside()+h.Outside())
	}
	cold := left * price // cost of never being warm
	for k := range c.gain {
		calls := priorCount * (1/(1+float64(k)/price) - 1/(1+float64(k+1)/price))
		for n, h := range c.seen {
			calls += lookbacks[n].weight * float64(h.Count(k))
		}
		left -= calls
		// A call within the minute is taken to come in its middle; a later call leaves the whole minute idle.
		c.gain[k] = price*calls - (left + calls/2)
	}
	from, to := c.best(cold)
	c.spans[0] = Span{time.Duration(from) * binWidth, time.Duration(to) * binWidth}
	return c.spans[:]
}

// best returns the bins of the span with the largest gain. It returns the best span from the beginning where that costs
// at most 1/laterSpanCost as much. cold is the cost of never being warm. An empty span means that.
func (c *Cheapest) best(cold float64) (from, to int) {
	begin, sum, largest := 0, 0.0, 0.0
	prefix, first, until := 0.0, 0.0, 0
	for k, w := range c.gain {
		if prefix += w; prefix > first {
			first, until = prefix, k+1
		}
		if sum <= 0 {
			begin, sum = k, 0
		}
		if sum += w; sum > largest {
			largest, from, to = sum, begin, k+1
		}
	}
	if cold-largest > laterSpanCost*(cold-first) {
		return 0, until
	}
	return from, to
}
