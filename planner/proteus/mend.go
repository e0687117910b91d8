package proteus

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/planner/capacity"
	"github.com/sluice-serving/sluice/serving"
)

// workers finds the fewest added workers of each device type, and the cheapest mix of types where that costs less than
// any single type.
func (d *diagnoser) workers(ctx context.Context) error {
	types := len(d.r.Spec.DeviceTypes)
	var found []capacity.Mend
	try := func(price []float64, within float64, growing []serving.DeviceTypeID) error {
		m, _ := d.p.read(d.r, growing...)
		add, proven, ok, err := d.p.additions(ctx, m, price, within)
		if err != nil || !ok {
			return err
		}
		mend := capacity.Mend{Proven: proven}
		for t, n := range add {
			if n > 0 {
				mend.Add = append(mend.Add, capacity.Addition{Device: serving.DeviceTypeID(t), Workers: n})
				mend.CostPerHour += float64(n) * d.r.Price(serving.DeviceTypeID(t))
			}
		}
		larger := d.r
		if larger.Spec, _, err = d.r.Spec.Resized(add); err != nil {
			return err
		}
		m, _ = d.p.read(larger)
		if ok, err = d.p.carriesAll(ctx, m); err == nil && ok {
			found = append(found, mend)
		}
		return err
	}
	var growing []serving.DeviceTypeID
	highestPrice := 0.0
	for t := range types {
		if d.r.Spec.DeviceTypes[t].Part {
			continue // no worker is of such a type
		}
		growing = append(growing, serving.DeviceTypeID(t))
		highestPrice = max(highestPrice, d.r.Price(serving.DeviceTypeID(t)))
		price := slices.Repeat([]float64{-1}, types)
		price[t] = 1
		if err := try(price, almostOne, []serving.DeviceTypeID{serving.DeviceTypeID(t)}); err != nil {
			return err
		}
	}
	slices.SortStableFunc(found, func(a, b capacity.Mend) int { return cmp.Compare(a.CostPerHour, b.CostPerHour) })
	singles := found
	if len(growing) > 1 {
		found = nil
		price := make([]float64, types)
		for t := range price {
			// Among equal costs the fewest workers win; without prices only their number counts.
			price[t] = d.r.Price(serving.DeviceTypeID(t)) + max(highestPrice, 1)*workerCost
			if d.r.Spec.DeviceTypes[t].Part {
				price[t] = -1
			}
		}
		if err := try(price, 0, growing); err != nil {
			return err
		}
		for _, mix := range found {
			if len(mix.Add) > 1 && (len(singles) == 0 || d.less(&mix, &singles[0])) {
				singles = append([]capacity.Mend{mix}, singles...)
			}
		}
	}
	d.out.Mends = append(d.out.Mends, singles...)
	return nil
}

const (
	// almostOne is the distance at which a whole number of workers is proven to be the smallest.
	almostOne = 0.999
	// workerCost is what a worker counts besides its price, in units of the highest price.
	workerCost = 1e-6
)

// less reports whether a costs less than b, or the same with fewer workers.
func (d *diagnoser) less(a, b *capacity.Mend) bool {
	count := func(m *capacity.Mend) (n int) {
		for _, x := range m.Add {
			n += x.Workers
		}
		return n
	}
	if math.Abs(a.CostPerHour-b.CostPerHour) > 1e-9 {
		return a.CostPerHour < b.CostPerHour
	}
	return count(a) < count(b)
}

// floors finds for each app with a floor the highest floor with which the demand is carried; if no app alone helps,
// such floors for all of them.
func (d *diagnoser) floors(ctx context.Context) error {
	var having []serving.AppID
	alone := false
	for a, app := range d.r.Spec.Apps {
		if app.Floor <= 0 {
			continue
		}
		having = append(having, serving.AppID(a))
		floors := d.floorsOf()
		to, ok, err := d.lower(ctx, floors, serving.AppID(a))
		if err != nil {
			return err
		}
		if ok {
			alone = true
			d.out.Mends = append(d.out.Mends, capacity.Mend{Floors: []capacity.Floor{{App: serving.AppID(a), To: to}}})
		}
	}
	if alone || len(having) < 2 {
		return nil
	}
	floors := d.floorsOf()
	for _, a := range having {
		floors[a] = 0
	}
	if ok, err := d.withFloors(ctx, floors); err != nil || !ok {
		return err
	}
	mend := capacity.Mend{}
	for _, a := range having {
		// One app after the other gets the highest possible floor while the apps after it have none.
		to, _, err := d.lower(ctx, floors, a)
		if err != nil {
			return err
		}
		floors[a] = to
		if to < d.r.Spec.Apps[a].Floor {
			mend.Floors = append(mend.Floors, capacity.Floor{App: a, To: to})
		}
	}
	d.out.Mends = append(d.out.Mends, mend)
	return nil
}

func (d *diagnoser) floorsOf() []float64 {
	out := make([]float64, len(d.r.Spec.Apps))
	for a, app := range d.r.Spec.Apps {
		out[a] = app.Floor
	}
	return out
}

func (d *diagnoser) withFloors(ctx context.Context, floors []float64) (bool, error) {
	m, _ := d.p.read(d.altered(func(apps []serving.App) {
		for a := range apps {
			apps[a].Floor = floors[a]
		}
	}))
	return d.p.carriesAll(ctx, m)
}

// lower finds the highest floor of an app, at most its own, with which the demand is carried. Only accuracies of its
// variants make a difference.
func (d *diagnoser) lower(ctx context.Context, floors []float64, a serving.AppID) (to float64, ok bool, err error) {
	steps := []float64{d.r.Spec.Apps[a].Floor}
	for _, s := range d.r.Spec.Apps[a].Stages {
		for _, v := range d.r.Spec.Stages[s].Variants {
			if x := d.r.Spec.Variants[v].Accuracy; x < steps[0] {
				steps = append(steps, x)
			}
		}
	}
	slices.SortFunc(steps, func(a, b float64) int { return cmp.Compare(b, a) })
	for _, x := range slices.Compact(steps) {
		with := slices.Clone(floors)
		with[a] = x
		if ok, err := d.withFloors(ctx, with); err != nil || ok {
			return x, ok, err
		}
	}
	return 0, false, nil
}

// objectives finds for each app with a bottleneck the shortest longer objective; if no app alone helps, longer
// objectives for all by the same factor.
func (d *diagnoser) objectives(ctx context.Context) error {
	narrow := d.bottleneckApps()
	sets := [][]serving.AppID{}
	for _, a := range narrow[:min(len(narrow), maxSearchedApps)] {
		sets = append(sets, []serving.AppID{a})
	}
	if len(narrow) > 1 {
		sets = append(sets, narrow)
	}
	alone := false
	for _, apps := range sets {
		if len(apps) > 1 && alone {
			break
		}
		mend, ok, err := d.longer(ctx, apps)
		if err != nil {
			return err
		}
		if ok {
			alone = true
			d.out.Mends = append(d.out.Mends, mend)
		}
	}
	return nil
}

const (
	// maxSearchedApps is how many apps' objectives are searched one by one: each takes some ten solves.
	maxSearchedApps = 4
	// maxStretch is the largest factor on an objective that is considered.
	maxStretch = 64
	// stretchTolerance is how closely the smallest factor is searched.
	stretchTolerance = 1.01
)

// longer finds the smallest factor on the objectives of apps with which the demand is carried.
func (d *diagnoser) longer(ctx context.Context, apps []serving.AppID) (capacity.Mend, bool, error) {
	at := func(factor float64, round bool) []capacity.Objective {
		var out []capacity.Objective
		for _, a := range apps {
			to := time.Duration(float64(d.r.Spec.Apps[a].SLO.Latency) * factor)
			if round {
				to = capacity.RoundObjective(to)
			}
			out = append(out, capacity.Objective{App: a, To: to})
		}
		return out
	}
	try := func(with []capacity.Objective) (bool, error) {
		m, _ := d.p.read(d.altered(func(all []serving.App) {
			for _, o := range with {
				all[o.App].SLO.Latency = o.To
			}
		}))
		return d.p.carriesAll(ctx, m)
	}
	low, high := 1.0, 2.0
	for ; ; low, high = high, high*2 {
		if high > maxStretch {
			return capacity.Mend{}, false, nil
		}
		if ok, err := try(at(high, false)); err != nil {
			return capacity.Mend{}, false, err
		} else if ok {
			break
		}
	}
	for high/low > stretchTolerance {
		mid := math.Sqrt(low * high)
		ok, err := try(at(mid, false))
		if err != nil {
			return capacity.Mend{}, false, err
		}
		if ok {
			high = mid
		} else {
			low = mid
		}
	}
	out := at(high, true)
	if ok, err := try(out); err != nil || ok {
		return capacity.Mend{SLOs: out}, ok, err
	}
	return capacity.Mend{SLOs: at(high, false)}, true, nil
}

// options tries the planner without its restrictions: with any variant, and with workers that may change their app.
func (d *diagnoser) options(ctx context.Context) error {
	for _, free := range []struct {
		mend   capacity.Mend
		change func(o *Options) (restricted bool)
	}{
		{capacity.Mend{AnyVariant: true}, func(o *Options) bool {
			was := o.Select
			o.Select = AnyVariant
			return was != AnyVariant
		}},
		{capacity.Mend{FreePlace: true}, func(o *Options) bool {
			was := o.Place
			o.Place = Free
			return was != Free && d.r.Snapshot != nil
		}},
	} {
		p := *d.p
		if !free.change(&p.Options) {
			continue
		}
		m, _ := p.read(d.r)
		ok, err := p.carriesAll(ctx, m)
		if err != nil {
			return err
		}
		if ok {
			d.out.Mends = append(d.out.Mends, free.mend)
		}
	}
	return nil
}

// combined makes every unserved stage servable, by a lower floor where that is enough and by a longer objective
// elsewhere. It is tried when changes of one kind are not enough.
func (d *diagnoser) combined(ctx context.Context) error {
	if len(d.out.Mends) > 0 || len(d.out.Unserved) == 0 {
		return nil
	}
	floors := make(map[serving.AppID]float64)
	slos := make(map[serving.AppID]time.Duration)
	for _, u := range d.out.Unserved {
		switch {
		case u.Floor > 0:
			if to, ok := floors[u.App]; !ok || u.Floor < to {
				floors[u.App] = u.Floor
			}
		case u.SLO > 0:
			slos[u.App] = max(slos[u.App], u.SLO)
		default:
			return nil
		}
	}
	m, _ := d.p.read(d.altered(func(apps []serving.App) {
		for a, to := range floors {
			apps[a].Floor = to
		}
		for a, to := range slos {
			apps[a].SLO.Latency = to
		}
	}))
	ok, err := d.p.carriesAll(ctx, m)
	if err != nil || !ok {
		return err
	}
	mend := capacity.Mend{}
	for a := range d.r.Spec.Apps {
		id := serving.AppID(a)
		if to, ok := floors[id]; ok {
			mend.Floors = append(mend.Floors, capacity.Floor{App: id, To: to})
		}
		if to, ok := slos[id]; ok {
			mend.SLOs = append(mend.SLOs, capacity.Objective{App: id, To: to})
		}
	}
	d.out.Mends = append(d.out.Mends, mend)
	return nil
}

// demands finds the most that each app with a bottleneck may ask for while all others get their demand.
func (d *diagnoser) demands(ctx context.Context) error {
	for _, a := range d.bottleneckApps() {
		of := func(s serving.StageID) bool { return d.m.stages[s].App == a }
		part, bound, _, err := d.p.largestMultiple(ctx, d.m, func(s serving.StageID) role {
			if of(s) {
				return scaled
			}
			return whole
		})
		if err != nil {
			return err
		}
		if part > 0 && part < 1 && int(a) < len(d.r.Rates) {
			d.out.Mends = append(d.out.Mends, capacity.Mend{
				Demand: []capacity.Demand{{App: a, To: part * d.r.Rates[a]}},
				Proven: bound <= part*(1+2*multipleTolerance),
			})
		}
	}
	return nil
}
