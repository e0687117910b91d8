package scale

import (
	"time"

	"github.com/sluice-serving/sluice/algo/histogram"
	"github.com/sluice-serving/sluice/serving"
)

// ColdPrice is what a cold start is taken to be worth, in idle time.
const ColdPrice = 2 * time.Hour

// Cheapest keeps an app warm in the span of its idle time that is expected to cost least, where a cold start costs as
// much as an instance that idles for Price: no percentile has to be chosen, and where nobody is likely to call soon
// nothing is kept. The span begins at once unless another is expected to cost a tenth less: calls that come like
// clockwork.
//
// The expectation is over the idle times of the last week, those of the last day counting four times and those of the
// last hour fourteen times, so that both the day's period and a burst show; and over a few that were not seen, half of
// which are longer than Price, so that little seen means to keep for about as long as it costs to start, which costs at
// most twice what knowing the future would (the rent-or-buy rule).
type Cheapest struct {
	Price time.Duration // 0 means ColdPrice

	seen  [len(looks)]*histogram.Sliding
	worth [binCount]float64 // of being warm in a minute, in minutes of idle time
	spans [1]Span
}

// looks are what Cheapest looks back on and what an idle time counts in each.
var looks = [...]struct {
	tracked time.Duration
	slices  int
	counts  float64
}{{7 * 24 * time.Hour, 14, 1}, {longTracked, 24, 3}, {shortTracked, 12, 10}}

const (
	// unseen is how much idle times that were not seen count.
	unseen = 4
	// surely is the part of the cost from the beginning that a later span may have.
	surely = 0.9
)

// NewCheapest returns the policy.
func NewCheapest(price time.Duration) *Cheapest {
	c := &Cheapest{Price: price}
	for k, l := range looks {
		c.seen[k] = newIdle(l.tracked, l.slices)
	}
	return c
}

// Name implements Keeper.
func (*Cheapest) Name() string { return "cheapest" }

// Idled implements Keeper.
func (c *Cheapest) Idled(now serving.Time, idle time.Duration) {
	for _, h := range c.seen {
		h.Add(int64(now), int64(idle))
	}
}

// Warm implements Keeper.
func (c *Cheapest) Warm(now serving.Time) []Span {
	price := float64(or(c.Price, ColdPrice)) / float64(binWidth)
	left := float64(unseen)
	for k, h := range c.seen {
		h.Advance(int64(now))
		left += looks[k].counts * float64(h.Inside()+h.Outside())
	}
	cold := left * price // what it costs to be warm never
	for k := range c.worth {
		calls := unseen * (1/(1+float64(k)/price) - 1/(1+float64(k+1)/price))
		for n, h := range c.seen {
			calls += looks[n].counts * float64(h.Count(k))
		}
		left -= calls
		// A call in the minute comes in its middle, one after it has the whole minute idle.
		c.worth[k] = price*calls - (left + calls/2)
	}
	from, to := c.best(cold)
	c.spans[0] = Span{time.Duration(from) * binWidth, time.Duration(to) * binWidth}
	return c.spans[:]
}

// best returns the span that is worth most, or the best from the beginning where that is as good but for the margin.
// Never to be warm costs cold.
func (c *Cheapest) best(cold float64) (from, to int) {
	begin, sum, most := 0, 0.0, 0.0
	prefix, first, until := 0.0, 0.0, 0
	for k, w := range c.worth {
		if prefix += w; prefix > first {
			first, until = prefix, k+1
		}
		if sum <= 0 {
			begin, sum = k, 0
		}
		if sum += w; sum > most {
			most, from, to = sum, begin, k+1
		}
	}
	if cold-most > surely*(cold-first) {
		return 0, until
	}
	return from, to
}
