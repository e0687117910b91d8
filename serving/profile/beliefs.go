package profile

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// beliefs are the latencies that a Learned answers with.
type beliefs struct {
	prior   Profile // nil for none
	devices int
	// by variant*devices + device type
	cells []believed
}

// believed is the latencies believed of a variant on a device type.
type believed struct {
	maxItems int // of a batch
	// tables are by concurrency-1, then by size class. A concurrency without a table of its own shares that of the
	// nearest one. All are nil before the first table is made.
	tables [concurrencyLevels][]time.Duration
}

// Latency implements Profile. Items beyond the variant's MaxBatch are Unknown.
func (b *beliefs) Latency(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) time.Duration {
	c := &b.cells[int(v)*b.devices+int(d)]
	if items < 1 || items > c.maxItems {
		return Unknown
	}
	if t := c.tables[min(max(concurrency, 1), concurrencyLevels)-1]; t != nil {
		return t[classOf(items)]
	}
	return b.guess(v, d, items, concurrency)
}

// guess answers for a variant that was not observed often enough on a device type. It takes the prior, else half of the
// least latency that is believed of any device type. A low guess makes routers that compare latencies try the device
// type, and then it is known.
func (b *beliefs) guess(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) time.Duration {
	if l := b.priorLatency(v, d, items, concurrency); l != Unknown {
		return l
	}
	least := Unknown
	for o := range b.devices {
		if t := b.cells[int(v)*b.devices+o].tables[min(max(concurrency, 1), concurrencyLevels)-1]; t != nil {
			least = min(least, t[classOf(items)])
		} else {
			least = min(least, b.priorLatency(v, serving.DeviceTypeID(o), items, concurrency))
		}
	}
	if least == Unknown {
		return unseenLatency
	}
	return max(least/2, unseenLatency)
}

// priorLatency returns the prior's latency, Unknown without a prior.
func (b *beliefs) priorLatency(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) time.Duration {
	if b.prior == nil {
		return Unknown
	}
	return b.prior.Latency(v, d, items, concurrency)
}

// Load implements Profile: the prior's load time, else 0.
func (b *beliefs) Load(v serving.VariantID, d serving.DeviceTypeID) time.Duration {
	if b.prior == nil {
		return 0
	}
	return b.prior.Load(v, d)
}

// Known implements Learner.
func (b *beliefs) Known(v serving.VariantID, d serving.DeviceTypeID) bool {
	return b.cells[int(v)*b.devices+int(d)].tables[0] != nil || b.priorLatency(v, d, 1, 1) != Unknown
}

// frozen is a copy of beliefs that does not answer with guesses: a plan must not rely on a guess.
type frozen struct{ beliefs }

// Latency implements Profile. It is Unknown for what is not Known.
func (f *frozen) Latency(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) time.Duration {
	if !f.Known(v, d) {
		return Unknown
	}
	return f.beliefs.Latency(v, d, items, concurrency)
}

// Learner implements Profile: frozen beliefs do not learn.
func (f *frozen) Learner() Learner { return nil }
