package capacity

import (
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Offer is a variant that runs batches of one size and has a worker to itself, for planners that choose batch sizes
// and numbers of such workers.
type Offer struct {
	Group   int // of workers: the DeviceTypeID
	Stage   serving.StageID
	Variant serving.VariantID
	Batch   int           // items
	Limit   int           // of a batch, in items: Batch, or more where a query of the app's mix has more
	Run     time.Duration // of a full batch
	Rate    float64       // items/s with full batches
}

// PowersOfTwo are the batch sizes that Loki and IPA plan with.
var PowersOfTwo = []int{1, 2, 4, 8, 16, 32, 64}

// Offers lists what may serve the stages on the given groups of workers, which are by DeviceTypeID: by stage, group,
// variant and batch size, all ascending. A full batch takes at most the given part of its app's objective. Variants
// below their app's accuracy floor are left out, and what memory does not hold.
func Offers(r *plan.Request, believed profile.Profile, groups [][]serving.WorkerID, broken []bool, sizes []int,
	part float64) (out []Offer) {
	spec := r.Spec
	for s := range spec.Stages {
		id, a := serving.StageID(s), spec.Stages[s].App
		app := &spec.Apps[a]
		within := time.Duration(part * float64(app.SLO.Latency-app.Slack))
		for g := range groups {
			if len(groups[g]) == 0 || app.Closed {
				continue
			}
			d := serving.DeviceTypeID(g)
			for _, v := range spec.Stages[s].Variants {
				x := &spec.Variants[v]
				if broken[v] || x.Retired || spec.BelowFloor(v) {
					continue
				}
				fits := func(b int, within time.Duration) bool {
					memory := spec.DeviceTypes[d].MemoryBytes
					return b <= x.MaxBatch && believed.Latency(v, d, b, 1) <= within &&
						(memory == 0 || x.MemoryBytes+int64(b)*x.ItemBytes <= memory)
				}
				large := 1
				for k := range r.Mix(a).Classes() {
					// A query's items run together at the first stage of its app.
					if n, _ := r.Mix(a).Class(k); spec.Source(a) == id && fits(n, app.SLO.Latency-app.Slack) {
						large = n
					}
				}
				for _, b := range sizes {
					if fits(b, within) {
						run := believed.Latency(v, d, b, 1)
						out = append(out, Offer{g, id, v, b, max(b, large), run, float64(b) / max(run, 1).Seconds()})
					}
				}
			}
		}
	}
	return out
}

// PlaceOffers gives counts[k] workers of its group to each offer k, with as few loads as can be, and returns the
// instances by worker, without shares, and the offer of each. loads counts the variants that have to be loaded.
func PlaceOffers(r *plan.Request, groups [][]serving.WorkerID, offers []Offer, counts []int) (
	instances []plan.Instance, of []int, loads int) {
	at, loads := PlaceCounts(groups, offers, counts, RunningByWorker(r.Snapshot))
	for w, worker := range r.Spec.Workers {
		k, ok := at[serving.WorkerID(w)]
		if !ok {
			continue
		}
		o := &offers[k]
		instances = append(instances, plan.Instance{
			Worker: serving.WorkerID(w), Place: 1, Stage: o.Stage, Slots: 1,
			Cores:    r.Spec.DeviceTypes[worker.DeviceType].Cores,
			Variants: []plan.Variant{{Variant: o.Variant, Limit: o.Limit}},
		})
		of = append(of, k)
	}
	return instances, of, loads
}

// Prices returns, by DeviceTypeID, what a worker counts in a sum of costs: its price in units of the cheapest one that
// has a price; 1 for those without.
func Prices(r *plan.Request) []float64 {
	least := 0.0
	for d := range r.Spec.DeviceTypes {
		if p := r.Price(serving.DeviceTypeID(d)); p > 0 && (least == 0 || p < least) {
			least = p
		}
	}
	out := make([]float64, len(r.Spec.DeviceTypes))
	for d := range out {
		if out[d] = 1; least > 0 && r.Price(serving.DeviceTypeID(d)) > 0 {
			out[d] = r.Price(serving.DeviceTypeID(d)) / least
		}
	}
	return out
}

// ItemRates returns, by StageID, the items/s to plan for: of the app's rates, by AppID in queries/s, times the mean
// items of a query, times the fan-outs on the way.
func ItemRates(r *plan.Request, rates []float64) []float64 {
	out := make([]float64, len(r.Spec.Stages))
	for s, d := range StageDemands(r.Spec, rates) {
		out[s] = d.Rate * r.Mix(d.App).Mean()
	}
	return out
}
