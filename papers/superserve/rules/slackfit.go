package rules

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// SlackFit is the policy of SuperServe (NSDI 2025, arXiv 2312.16733). Queries wait in a central queue. The latencies
// that batches can have are cut into intervals of equal length, beforehand; each interval keeps one batch. A free
// instance takes the first queries of the queue. The time that the first of them has left chooses the batch: the
// slowest kept one that is in time. Few queries with much time left so get an accurate variant. A burst takes time from
// those that wait, which chooses fast variants in large batches.
//
// Of several batches in an interval the one with the most items is kept, then the most accurate, then the fastest.
// Where fewer queries wait than the batch holds, they run on its variant all the same: the rule never waits.
type SlackFit struct{ route.ByStage[slackFitStage] }

// latencyBuckets is the number of intervals. The paper's number is not known to us; more make the variant and the
// batch follow the slack more finely.
const latencyBuckets = 32

type slackFitStage struct {
	epoch  uint64
	built  bool
	of     []int // by index into the ready instances: its index in tables
	tables []bucketTable
}

// bucketTable holds the batches that instances with the same variants on the same device type choose from.
type bucketTable struct {
	like *fleet.Instance
	kept []bucket // latencies ascend
}

// bucket is the batch that is kept for an interval of latencies.
type bucket struct {
	variant serving.VariantID
	items   int
	takes   time.Duration
}

// NewSlackFit returns the rule.
func NewSlackFit() *SlackFit { return &SlackFit{} }

// Name implements route.Router.
func (*SlackFit) Name() string { return "slackfit" }

// Needs implements route.Router.
func (*SlackFit) Needs() plan.Sections { return plan.Limits }

// Traits implements route.Router.
func (*SlackFit) Traits() route.Traits { return route.Traits{Chooses: true} }

// Route implements route.Router. It costs time linear in the stage's instances and in the queries that it assigns.
func (o *SlackFit) Route(v *route.View) {
	s := o.Of(v.Stage)
	all := v.Instances()
	if !s.built || s.epoch != v.Fleet.Epoch() {
		s.build(v, all)
	}
	for at, i := range all {
		if v.Waiting().Len() == 0 {
			return
		}
		if route.MayStart(v.Fleet, i) {
			s.fill(v, i, s.tables[s.of[at]].kept)
		}
	}
}

// fill gives an instance a batch of the first queries. A query with requirements of its own goes alone.
func (s *slackFitStage) fill(v *route.View, i *fleet.Instance, kept []bucket) {
	left, taken := 0, 0
	for r := v.Waiting().Head(); r != fleet.Nil; {
		next, t := v.Fleet.Next(r), v.Fleet.Task(r)
		switch {
		case t.Constrained() && taken == 0 && v.Fleet.CanServe(i, t):
			v.Choose(i, serving.None)
			v.Assign(r, i)
			return
		case t.Constrained() || len(kept) == 0:
		case taken == 0:
			b := chooseBucket(kept, t.Deadline().Sub(v.Now), t.Items())
			if b == nil {
				break // too large for every batch here
			}
			v.Choose(i, b.variant)
			v.Assign(r, i)
			left, taken = b.items-t.Items(), 1
		case t.Items() > left:
			return
		default:
			v.Assign(r, i)
			left -= t.Items()
		}
		if taken > 0 && left == 0 {
			return
		}
		r = next
	}
}

// chooseBucket returns the slowest batch that ends within slack and holds so many items; where none does, the fastest
// one that holds them; nil where they are too many for all.
func chooseBucket(kept []bucket, slack time.Duration, items int) *bucket {
	for k := len(kept) - 1; k >= 0; k-- {
		if kept[k].takes <= slack && kept[k].items >= items {
			return &kept[k]
		}
	}
	for k := range kept {
		if kept[k].items >= items {
			return &kept[k]
		}
	}
	return nil
}

func (s *slackFitStage) build(v *route.View, all []*fleet.Instance) {
	s.epoch, s.built = v.Fleet.Epoch(), true
	s.of, s.tables = s.of[:0], s.tables[:0]
	for _, i := range all {
		at := slices.IndexFunc(s.tables, func(t bucketTable) bool { return alike(t.like, i) })
		if at < 0 {
			at = len(s.tables)
			s.tables = append(s.tables, bucketTable{i, buckets(v, i)})
		}
		s.of = append(s.of, at)
	}
}

// alike reports whether two instances of a stage run the same batches equally fast.
func alike(a, b *fleet.Instance) bool {
	if a.DeviceType() != b.DeviceType() || a.Slots() != b.Slots() || a.Variants() != b.Variants() {
		return false
	}
	for k := range a.Variants() {
		x, y := a.Variant(k), b.Variant(k)
		if x.Variant != y.Variant || x.Limit != y.Limit || x.Usable() != y.Usable() {
			return false
		}
	}
	return true
}

// buckets returns the batches to keep for an instance, by latency. Those that take longer than the objective are of no
// use unless all do.
func buckets(v *route.View, i *fleet.Instance) []bucket {
	spec := v.Fleet.Spec()
	var all []bucket
	for k := range i.Variants() {
		l := i.Variant(k)
		for n := 1; l.Usable() && n <= l.Limit; n++ {
			takes := v.Fleet.Latency(l.Variant, i.DeviceType(), n, i.Slots())
			if takes < profile.Unknown {
				all = append(all, bucket{l.Variant, n, takes})
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b bucket) int { return int(a.takes - b.takes) })
	within := spec.Apps[spec.Stages[v.Stage].App].SLO.Latency
	n := len(all)
	for n > 1 && all[n-1].takes > within {
		n--
	}
	all = all[:n]
	low, width := all[0].takes, (all[n-1].takes-all[0].takes)/latencyBuckets+1
	better := func(a, b bucket) bool {
		if a.items != b.items {
			return a.items > b.items
		}
		return spec.Variants[a.variant].Accuracy > spec.Variants[b.variant].Accuracy
	}
	var out []bucket
	last := time.Duration(-1)
	for _, x := range all {
		switch in := (x.takes - low) / width; {
		case in != last:
			out, last = append(out, x), in
		case better(x, out[len(out)-1]):
			out[len(out)-1] = x
		}
	}
	return out
}
