package proteus

import (
	"slices"

	"github.com/sluice-serving/sluice/internal/planner/diagnosis"
	"github.com/sluice-serving/sluice/serving"
)

// workers finds the fewest added workers of each device type, and the cheapest mix of types where that costs less than
// any single type.
func (d *diagnoser) workers() {
	types := len(d.Request.Spec.DeviceTypes)
	var singles []diagnosis.Remedy
	var growing []serving.DeviceTypeID
	highestPrice := 0.0
	for t := range types {
		if d.Request.Spec.DeviceTypes[t].Part {
			continue // no worker is of such a type
		}
		growing = append(growing, serving.DeviceTypeID(t))
		highestPrice = max(highestPrice, d.Request.Price(serving.DeviceTypeID(t)))
		price := slices.Repeat([]float64{-1}, types)
		price[t] = 1
		if remedy, ok := d.add(price, almostOne, serving.DeviceTypeID(t)); ok {
			singles = append(singles, remedy)
		}
	}
	var mix diagnosis.Remedy
	if len(growing) > 1 {
		price := make([]float64, types)
		for t := range price {
			// Among equal costs the fewest workers win; without prices only their number counts.
			price[t] = d.Request.Price(serving.DeviceTypeID(t)) + max(highestPrice, 1)*workerCost
			if d.Request.Spec.DeviceTypes[t].Part {
				price[t] = -1
			}
		}
		if x, ok := d.add(price, 0, growing...); ok {
			mix = x
		}
	}
	d.FoundMachines(singles, mix)
}

// add finds the workers of growing types that let the demand be carried at the lowest price; ok is false where none do.
func (d *diagnoser) add(price []float64, within float64, growing ...serving.DeviceTypeID) (
	_ diagnosis.Remedy, ok bool,
) {
	if d.err != nil {
		return diagnosis.Remedy{}, false
	}
	m, _ := d.p.read(d.Request, growing...)
	add, proven, ok, err := d.p.additions(d.ctx, m, price, within)
	var larger *serving.Spec
	if err == nil && ok {
		larger, _, err = d.Request.Spec.Resized(add)
	}
	if d.err = err; err != nil || !ok {
		return diagnosis.Remedy{}, false
	}
	remedy := diagnosis.Remedy{Proven: proven}
	for t, n := range add {
		if n > 0 {
			remedy.Add = append(remedy.Add, diagnosis.Addition{Device: serving.DeviceTypeID(t), Workers: n})
			remedy.CostPerHour += float64(n) * d.Request.Price(serving.DeviceTypeID(t))
		}
	}
	return remedy, d.enough(&diagnosis.Change{Spec: larger})
}

const (
	// almostOne is the distance at which a whole number of workers is proven to be the smallest.
	almostOne = 0.999
	// workerCost is what a worker counts besides its price, in units of the highest price.
	workerCost = 1e-6
)

// options tries the planner without its restrictions: with any variant, and with workers that may change their app.
func (d *diagnoser) options() {
	was := d.p.Options
	try := func(restricted bool, o Options, remedy diagnosis.Remedy) {
		if !restricted {
			return
		}
		p := *d.p
		p.Options = o
		if m, _ := p.read(d.Request); d.carries(m) {
			d.Found(remedy)
		}
	}
	any, free := was, was
	any.Select, free.Place = AnyVariant, Free
	try(was.Select != AnyVariant, any, diagnosis.Remedy{AnyVariant: true})
	try(was.Place != Free && d.Request.Snapshot != nil, free, diagnosis.Remedy{FreePlace: true})
}

// combined makes every unserved stage servable. It is tried when changes of one kind are not enough.
func (d *diagnoser) combined() {
	if len(d.Out.Remedies) > 0 || len(d.Out.Unserved) == 0 {
		return
	}
	if remedy, x, ok := d.Servable(); ok && d.enough(x) {
		d.Found(remedy)
	}
}

// demands finds the most that each app with a bottleneck may ask for while all others get their demand.
func (d *diagnoser) demands() {
	for _, a := range d.Narrow() {
		of := func(s serving.StageID) bool { return d.m.stages[s].App == a }
		part, bound := d.multiple(func(s serving.StageID) role {
			if of(s) {
				return scaled
			}
			return whole
		})
		if part > 0 && part < 1 && int(a) < len(d.Request.Rates) {
			d.Found(diagnosis.Remedy{
				Demand: []diagnosis.Demand{{App: a, To: part * d.Request.Rates[a]}},
				Proven: bound <= part*(1+2*multipleTolerance),
			})
		}
	}
}
