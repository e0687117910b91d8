package fake

import (
	"fmt"
	"math"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// Config says how the fake machines behave. The zero value answers at once, with copies of the inputs, and never fails.
type Config struct {
	// Latency returns the time of one run of items inputs; nil means 0. It is called by many goroutines. See Table for
	// measured latencies.
	Latency func(v serving.VariantID, items int) time.Duration
	// Load returns the time to load one variant; nil means 0. An instance loads its variants one after the other.
	Load func(v serving.VariantID) time.Duration

	// Seed chooses which batches fail. The choice depends on the seed and the batch's id only, never on timing.
	Seed uint64
	// ErrorRate is the probability in [0, 1] that a batch fails after having taken its full time.
	ErrorRate float64
	// MostItems returns the items of the largest batch of a variant that the machine has memory for, 0 for no limit;
	// nil means none. Larger ones fail after having taken their time.
	MostItems func(v serving.VariantID) int
	// LaunchFailures is the number of launches that fail before the first one succeeds.
	LaunchFailures int
	// LoseAfter returns the time from the launch of an instance to its loss; nil, or false, means never. Kill loses one
	// at once.
	LoseAfter func(id serving.InstanceID) (time.Duration, bool)

	// Outputs lists what every answer contains; empty means one copy of every input under its own name.
	Outputs []Output
	// RowOutputs lists, by variant, outputs whose rows are not items.
	RowOutputs map[serving.VariantID][]RowOutput
}

// RowOutput is a tensor of every answer whose rows are not items but, for instance, detections in them.
type RowOutput struct {
	Name    string
	PerItem float64 // rows per item, at least 0; the parts of a query together have as many rows as the whole, rounded
}

// Output is one tensor of every answer.
type Output struct {
	Name string
	// Input names the input that is copied. Empty means that Row is repeated instead.
	Input string
	// Row is the answer for one item, its first dimension being 1; it is repeated for each item of a query.
	Row tensor.Tensor
}

// maxPerItem bounds the rows for an item.
const maxPerItem = 1 << 16

// validate reports the first field that is not valid.
func (c *Config) validate() error {
	if !(c.ErrorRate >= 0 && c.ErrorRate <= 1) {
		return fmt.Errorf("fake backend: error_rate is %v, want a number in [0, 1]", c.ErrorRate)
	}
	if c.LaunchFailures < 0 {
		return fmt.Errorf("fake backend: launch_failures is %d, want at least 0", c.LaunchFailures)
	}
	for v, list := range c.RowOutputs {
		for _, f := range list {
			if !(f.PerItem >= 0 && f.PerItem <= maxPerItem) {
				return fmt.Errorf("fake backend: finds[%d] %q: %v per item, want a number in [0, %d]", v, f.Name,
					f.PerItem, maxPerItem)
			}
		}
	}
	for i, o := range c.Outputs {
		if o.Name == "" {
			return fmt.Errorf("fake backend: outputs[%d] has no name", i)
		}
		if o.Input != "" {
			continue
		}
		if err := o.Row.Validate(); err != nil {
			return fmt.Errorf("fake backend: outputs[%d].row: %w", i, err)
		}
		if len(o.Row.Shape) == 0 || o.Row.Shape[0] != 1 {
			return fmt.Errorf("fake backend: outputs[%d].row has shape %v, want a first dimension of 1", i, o.Row.Shape)
		}
	}
	return nil
}

// Table returns a Latency function that answers with the measured means on device type d at concurrency 1. Between two
// measured sizes it interpolates linearly; outside them it follows the nearest segment, or scales by items when there
// is only one point. A variant without points takes no time.
func Table(m serving.Measurements, d serving.DeviceTypeID) func(serving.VariantID, int) time.Duration {
	byVariant := map[serving.VariantID][]serving.LatencyPoint{}
	for _, p := range m.Latency {
		if p.DeviceType != d || p.Concurrency != 1 {
			continue
		}
		ps := byVariant[p.Variant]
		at := len(ps)
		for at > 0 && ps[at-1].Items > p.Items {
			at--
		}
		ps = append(ps, serving.LatencyPoint{})
		copy(ps[at+1:], ps[at:])
		ps[at] = p
		byVariant[p.Variant] = ps
	}
	return func(v serving.VariantID, items int) time.Duration {
		ps := byVariant[v]
		switch {
		case len(ps) == 0:
			return 0
		case len(ps) == 1:
			return time.Duration(float64(ps[0].Mean) * float64(items) / float64(ps[0].Items))
		}
		at := 1
		for at < len(ps)-1 && ps[at].Items < items {
			at++
		}
		a, b := ps[at-1], ps[at]
		if a.Items == b.Items {
			return b.Mean
		}
		slope := float64(b.Mean-a.Mean) / float64(b.Items-a.Items)
		return time.Duration(math.Max(0, float64(a.Mean)+slope*float64(items-a.Items)))
	}
}
