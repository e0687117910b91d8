package loki

import (
	"cmp"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// mostPaths bounds the paths of a branch that the programs look at. Beyond it a choice of variants and types keeps only
// the batch sizes that take least of the servers, and beyond that again only paths that no other one beats.
const mostPaths = 3000

// findPaths lists the paths of every branch. It fails when a branch has none.
func (x *request) findPaths(pl *pipe, r *plan.Request, broken []bool) error {
	app := &x.spec.Apps[pl.app]
	within := time.Duration(pathPart * float64(app.SLO.Latency-app.Slack))
	for n := range pl.branches {
		b := &pl.branches[n]
		b.paths = x.paths(b.stages, within)
		if len(b.paths) > 0 {
			continue
		}
		for _, s := range b.stages {
			if len(x.choices(s)) == 0 || s == b.stages[len(b.stages)-1] {
				ask := capacity.StageDemands(r.Spec, x.rates)[s]
				return capacity.Unservable(x.believed, x.spec, s, ask, capacity.TypesOf(x.groups), broken)
			}
		}
	}
	return nil
}

// choices returns the offers of a stage by variant and type, each list by batch size.
func (x *request) choices(s serving.StageID) (out [][]int) {
	for k := range x.offers {
		if x.offers[k].Stage != s {
			continue
		}
		at := slices.IndexFunc(out, func(list []int) bool {
			o := &x.offers[list[0]]
			return o.Variant == x.offers[k].Variant && o.Group == x.offers[k].Group
		})
		if at < 0 {
			at, out = len(out), append(out, nil)
		}
		out[at] = append(out[at], k)
	}
	return out
}

// paths lists the paths of a branch whose batches take at most within. Of the batch sizes of a choice of variants and
// types it lists those of which none can be enlarged: larger batches carry more.
func (x *request) paths(stages []serving.StageID, within time.Duration) (out []path) {
	choices := make([][][]int, len(stages))
	for n, s := range stages {
		choices[n] = x.choices(s)
	}
	var all [][]path // by choice of variants and types
	var vary func(n int, lists [][]int)
	vary = func(n int, lists [][]int) {
		if n < len(stages) {
			for _, list := range choices[n] {
				vary(n+1, append(lists, list))
			}
			return
		}
		if found := x.largestBatches(lists, within); len(found) > 0 {
			all = append(all, found)
		}
	}
	vary(0, nil)
	sum := 0
	for _, list := range all {
		sum += len(list)
	}
	for _, list := range all {
		if sum > mostPaths {
			list = []path{slices.MinFunc(list, func(a, b path) int { return cmp.Compare(a.work, b.work) })}
		}
		out = append(out, list...)
	}
	if len(out) > mostPaths {
		out = unbeaten(out)
	}
	return out
}

// unbeaten keeps the paths that no other one beats in accuracy and in work.
func unbeaten(all []path) (out []path) {
	slices.SortStableFunc(all, func(a, b path) int {
		return cmp.Or(cmp.Compare(a.work, b.work), cmp.Compare(b.accuracy, a.accuracy))
	})
	best := -1.0
	for _, p := range all {
		if p.accuracy > best {
			out, best = append(out, p), p.accuracy
		}
	}
	return out
}

// largestBatches lists the choices of one offer from each list that take at most within together, and of which no offer
// could be replaced by the next one of its list.
func (x *request) largestBatches(lists [][]int, within time.Duration) (out []path) {
	at := make([]int, len(lists))
	for {
		sum := time.Duration(0)
		for n, list := range lists {
			sum += x.offers[list[at[n]]].Run
		}
		maximal := sum <= within
		for n, list := range lists {
			if maximal && at[n]+1 < len(list) {
				more := x.offers[list[at[n]+1]].Run - x.offers[list[at[n]]].Run
				maximal = sum+more > within
			}
		}
		if maximal {
			out = append(out, x.path(lists, at))
		}
		n := len(lists) - 1
		for ; n >= 0; n-- {
			if at[n]++; at[n] < len(lists[n]) {
				break
			}
			at[n] = 0
		}
		if n < 0 {
			return out
		}
	}
}

func (x *request) path(lists [][]int, at []int) path {
	p := path{accuracy: 1}
	for n, list := range lists {
		k := list[at[n]]
		o := &x.offers[k]
		p.offers = append(p.offers, k)
		if best := x.spec.BestOfStage(o.Stage); best > 0 {
			p.accuracy *= x.accuracy(k) / best
		}
		p.work += x.items[o.Stage] / x.rates[x.spec.Stages[o.Stage].App] / o.Rate
	}
	return p
}
