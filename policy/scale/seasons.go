package scale

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// season is a period after which demand may come again, and into how many slots it is divided.
type season struct {
	period time.Duration
	slots  int
}

// seasons are the periods that are looked for.
var seasons = [...]season{
	{time.Minute, 60}, {5 * time.Minute, 60}, {15 * time.Minute, 60}, {time.Hour, 60}, {24 * time.Hour, 96},
	{7 * 24 * time.Hour, 168},
}

const (
	// seasonError is the mean squared error of forecasts by the season, relative to that of forecasts without, below
	// which a season counts. Without a season the two are about equal.
	seasonError = 0.5
	// mostGrown bounds by what factor demand is taken to have grown, or fallen, since the period before.
	mostGrown = 2
	// tenth is the resolution of the monitor's counts.
	tenth = serving.Time(100 * time.Millisecond)
)

// seasonal learns whether the demand of an app comes again after one of the seasons (ours). For each it compares two
// forecasts of every slot: the rate a period before, and the rate of the slots just before. Both are means over three
// slots, so that chance counts alike.
type seasonal struct {
	from   serving.Time // number of the first tenth of a second that is not counted yet
	cycles [len(seasons)]cycle
}

// cycle is what was seen of one season.
type cycle struct {
	counts []float32 // of the last three periods, by number of the slot modulo their length; nil before the first
	slot   int64     // number of the slot that is being counted
	first  int64     // number of the first whole slot
	seen   int       // forecasts that were compared
	// Mean squared errors, over about a period: by the season, and without.
	by, without float64
}

// count adds the arrivals since the last call. rate returns the mean rate over the last whole tenths of a second, in
// queries/s.
func (x *seasonal) count(now serving.Time, rate func(window time.Duration) float64) {
	to := now / tenth
	if to <= x.from {
		return
	}
	window := time.Duration((to - x.from) * tenth)
	n := rate(window) * window.Seconds()
	at := x.from * tenth
	x.from = to
	for k := range x.cycles {
		x.cycles[k].add(&seasons[k], at, n)
	}
}

// add counts arrivals at a time.
func (c *cycle) add(s *season, at serving.Time, n float64) {
	slot := int64(at) / (int64(s.period) / int64(s.slots))
	if c.counts == nil {
		c.counts = make([]float32, 3*s.slots)
		c.slot, c.first = slot, slot+1
	}
	for c.slot < slot {
		c.compare(s)
		c.slot++
		*c.count(c.slot) = 0
	}
	*c.count(slot) += float32(n)
}

func (c *cycle) count(slot int64) *float32 { return &c.counts[slot%int64(len(c.counts))] }

// around is the mean count of three slots, of which the last is given.
func (c *cycle) around(last int64) float64 {
	return float64(*c.count(last)+*c.count(last - 1)+*c.count(last - 2)) / 3
}

// compare compares the forecasts of the slot that has ended.
func (c *cycle) compare(s *season) {
	period := int64(s.slots)
	if c.slot-period-1 < c.first {
		return
	}
	actual := float64(*c.count(c.slot))
	by := actual - c.grown(s, c.slot)*c.around(c.slot-period+1)
	ahead := max(int64(lead)/(int64(s.period)/period), 1)
	without := actual - c.around(c.slot-ahead)
	c.seen++
	share := 1 / float64(min(c.seen, s.slots))
	c.by += share * (by*by - c.by)
	c.without += share * (without*without - c.without)
}

// grown is by what factor the demand of the quarter of a period before a slot differs from that a period before.
func (c *cycle) grown(s *season, slot int64) float64 {
	period := int64(s.slots)
	var now, before float64
	for k := slot - period/4; k < slot; k++ {
		if k-period < c.first {
			continue
		}
		now += float64(*c.count(k))
		before += float64(*c.count(k - period))
	}
	if before <= 0 {
		return 1
	}
	return min(max(now/before, 1/float64(mostGrown)), mostGrown)
}

// isSeason tells whether the season is one: over a whole period it has forecast better than the slots before.
func (c *cycle) isSeason(s *season) bool { return c.seen >= s.slots && c.by < seasonError*c.without }

// ahead is the highest rate, in queries/s, that the seasons forecast from now until some time later; 0 without one.
func (x *seasonal) ahead(now serving.Time, later time.Duration) (most float64) {
	for k := range x.cycles {
		c, s := &x.cycles[k], &seasons[k]
		if !c.isSeason(s) {
			continue
		}
		width := int64(s.period) / int64(s.slots)
		for slot := int64(now) / width; slot <= (int64(now)+int64(later))/width; slot++ {
			forecast := c.grown(s, c.slot) * c.around(slot-int64(s.slots)+1) / time.Duration(width).Seconds()
			most = max(most, forecast)
		}
	}
	return most
}
