package loadadaptive

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// oneSlack is the slacks of a policy that does not look at slack.
var oneSlack = []time.Duration{0}

// stage is the input of a rule.
type stage struct {
	spec       *serving.Spec
	id         serving.StageID
	budget     time.Duration // the stage's part of the objective
	percentile float64       // of the objective
	demand     float64       // queries/s
	target     float64       // accuracy to keep
	part       float64       // of its workers' time, in (0, 1]; below 1 where it shares them
	workers    []serving.WorkerID
	groupOf    []int   // by index in workers
	groups     []group // workers of one device type each
	// variants are those that may be used, the most accurate first, of equal ones the fastest first.
	variants []variant
}

type group struct {
	device  serving.DeviceTypeID
	workers int
	memory  int64 // bytes for the stage's variants together; 0 for no limit
}

type variant struct {
	id       serving.VariantID
	accuracy float64
	latency  [][]time.Duration // by group, then by items-1
}

// rate returns the queries/s of one worker of group g with batches of b.
func (v *variant) rate(g, b int) float64 { return float64(b) / v.latency[g][b-1].Seconds() }

// bestRate returns the highest such rate of batches that take at most within; 0 when none does.
func (v *variant) bestRate(g int, within time.Duration) float64 {
	out := 0.0
	for b := 1; b <= len(v.latency[g]); b++ {
		if v.latency[g][b-1] <= within {
			out = max(out, v.rate(g, b))
		}
	}
	return out
}

// capacity returns the queries/s of all workers with batches that take at most within: the sum of their throughputs
// (RAMSIS §7).
func (s *stage) capacity(v *variant, within time.Duration) float64 {
	out := 0.0
	for g := range s.groups {
		out += float64(s.groups[g].workers) * v.bestRate(g, within)
	}
	return out
}

const anyTime = time.Duration(math.MaxInt64)

// ownLimits returns, by group, the variant's own batch limits.
func (v *variant) ownLimits() []int {
	out := make([]int, len(v.latency))
	for g := range out {
		out[g] = len(v.latency[g])
	}
	return out
}

// fastest returns the variant with the smallest latency of one item, over all workers.
func (s *stage) fastest() int { return s.fastestOf(0) }

// fastestOf returns the fastest of the variants that reach an accuracy, or of all where none does.
func (s *stage) fastestOf(target float64) int {
	if s.variants[0].accuracy < target {
		target = 0
	}
	out, least := 0, math.Inf(1)
	for at := range s.variants {
		if s.variants[at].accuracy < target {
			continue
		}
		sum := 0.0
		for g := range s.groups {
			sum += float64(s.groups[g].workers) * s.variants[at].latency[g][0].Seconds()
		}
		if sum < least {
			out, least = at, sum
		}
	}
	return out
}

// measure groups the workers and looks up the believed latencies of every variant.
func (s *stage) measure(x *capacity.Alone) error {
	for _, w := range s.workers {
		d := s.spec.Workers[w].DeviceType
		g := slices.IndexFunc(s.groups, func(g group) bool { return g.device == d })
		if g < 0 {
			g = len(s.groups)
			s.groups = append(s.groups, group{device: d, memory: x.Memory(s.id, d)})
		}
		s.groups[g].workers++
		s.groupOf = append(s.groupOf, g)
	}
	floor := s.spec.Apps[s.spec.Stages[s.id].App].Floor
	s.target = s.spec.AccuracyForTarget(s.id)
	for _, id := range s.spec.Stages[s.id].Variants {
		if x.Broken[id] {
			continue
		}
		y := &s.spec.Variants[id]
		v := variant{id: id, accuracy: y.Accuracy}
		for _, g := range s.groups {
			if took := capacity.Latencies(x.Believed, id, g.device, y.MaxBatch); len(took) > 0 {
				v.latency = append(v.latency, took)
			}
		}
		if len(v.latency) == len(s.groups) && y.Accuracy >= floor {
			s.variants = append(s.variants, v)
		}
	}
	if len(s.variants) == 0 {
		return fmt.Errorf("stage %q: no variant of at least accuracy %v was measured on all of its workers",
			s.spec.Stages[s.id].Name, floor)
	}
	for _, g := range s.groups {
		s.fitMemory(g)
	}
	slices.SortStableFunc(s.variants, func(a, b variant) int {
		return cmp.Or(cmp.Compare(b.accuracy, a.accuracy), cmp.Compare(a.latency[0][0], b.latency[0][0]))
	})
	return nil
}

// fitMemory leaves out variants until a device holds the rest, as RAMSIS does. The fastest one stays.
func (s *stage) fitMemory(g group) {
	slices.SortStableFunc(s.variants, func(a, b variant) int {
		return cmp.Or(cmp.Compare(a.latency[0][0], b.latency[0][0]), cmp.Compare(a.accuracy, b.accuracy))
	})
	s.variants = capacity.FitMemory(s.spec, g.memory, s.variants, func(v *variant) serving.VariantID { return v.id })
}

// loadAll loads every usable variant on every worker.
func (s *stage) loadAll(out *plan.Plan) error {
	total := 0.0
	v := &s.variants[s.fastest()]
	for _, g := range s.groupOf {
		total += v.bestRate(g, anyTime)
	}
	for n, w := range s.workers {
		of := s.groups[s.groupOf[n]]
		i := plan.Instance{Worker: w, Stage: s.id, Slots: 1, Share: v.bestRate(s.groupOf[n], anyTime) / total}
		memory := int64(0)
		for at := range s.variants {
			x := &s.spec.Variants[s.variants[at].id]
			limit := len(s.variants[at].latency[s.groupOf[n]])
			i.Variants = append(i.Variants, plan.Variant{Variant: s.variants[at].id, Limit: limit})
			memory += x.MemoryBytes + int64(limit)*x.ItemBytes
		}
		if of.memory > 0 && memory > of.memory {
			return fmt.Errorf(
				"the variants of stage %q need %d bytes with full batches, device type %q has %d for it: use fewer "+
					"variants, or smaller batches",
				s.spec.Stages[s.id].Name, memory, s.spec.DeviceTypes[of.device].Name, of.memory)
		}
		out.Instances = append(out.Instances, i)
	}
	return nil
}
