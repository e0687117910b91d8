package scale

import (
	"time"

	"github.com/sluice-serving/sluice/algo/histogram"
	"github.com/sluice-serving/sluice/serving"
)

// ColdPrice is what a cold start is taken to be worth, in idle time.
const ColdPrice = 30 * time.Minute

// Cheapest keeps an app warm in every minute in which that is expected to cost less than the cold starts it spares, where a
// cold start costs as much as an instance that idles for Price. To be warm in a minute costs that minute if the app has not
// been called before, and spares the price if it is called in it: so what decides is how likely a call is in a minute,
// given that none came before, and minutes are decided each by itself. There may be several spans: one call after the other
// in a burst, and the next burst an hour later.
//
// Likelihoods come from the idle times of the last week, of the last day and of the last hour. Each is the prior of the next
// shorter one, so that the hour decides where it has seen much and the week where nothing else has.
type Cheapest struct {
	Price time.Duration // 0 means ColdPrice

	seen  [3]*histogram.Sliding // the longest first
	rate  [binCount]float64     // likelihood of a call in a minute, given that none came before
	spans []Span
}

// What Cheapest looks back on besides a day and an hour, what a prior is worth in idle times, and over how many minutes
// around one likelihoods are smoothed, as a share of the minutes passed.
const (
	weekTracked = 7 * 24 * time.Hour
	priorWorth  = 8
	smear       = 0.15
)

// NewCheapest returns the policy.
func NewCheapest(price time.Duration) *Cheapest {
	return &Cheapest{Price: price, seen: [3]*histogram.Sliding{newIdle(weekTracked, 14), newIdle(longTracked, 24), newIdle(shortTracked, 12)}}
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
	for k := range c.rate {
		// Nothing seen: as long as an idle time has cost less than a cold start, which costs at most twice what the best would.
		c.rate[k] = 0
		if float64(k) < price {
			c.rate[k] = 1.5 / price
		}
	}
	for _, h := range c.seen {
		h.Advance(int64(now))
		c.learn(h)
	}
	c.spans = c.spans[:0]
	for k, rate := range c.rate {
		// A call in the minute comes in its middle.
		if rate*price <= 1-rate/2 {
			continue
		}
		from, to := time.Duration(k)*binWidth, time.Duration(k+1)*binWidth
		if n := len(c.spans); n > 0 && c.spans[n-1].To == from {
			c.spans[n-1].To = to
		} else {
			c.spans = append(c.spans, Span{from, to})
		}
	}
	return c.spans
}

// learn takes the likelihoods for the prior of what a histogram holds.
func (c *Cheapest) learn(h *histogram.Sliding) {
	// Prefix sums over minutes: calls in a minute, and idle times that lasted so long.
	var calls, lasted [binCount + 1]float64
	left := float64(h.Inside() + h.Outside())
	for k := range binCount {
		n := float64(h.Count(k))
		calls[k+1], lasted[k+1] = calls[k]+n, lasted[k]+left
		left -= n
	}
	for k := range c.rate {
		w := int(smear * float64(k))
		from, to := max(k-w, 0), min(k+w+1, binCount)
		n := float64(to - from)
		c.rate[k] = ((calls[to]-calls[from])/n + priorWorth*c.rate[k]) / ((lasted[to]-lasted[from])/n + priorWorth)
	}
}
