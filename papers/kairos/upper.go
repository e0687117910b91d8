package kairos

// Upper is the upper bound of §5.2, Eqs. 9 to 15, on the queries/s that pools of a market serve in time. It reserves
// small queries for the auxiliary machines as long as these have time. That is not the best split if base machines gain
// more from some small sizes than from others. So with more than one size it is an estimate that may be exceeded (see
// Fluid). For several auxiliary types it is optimistic, because all are credited with the largest region.
//
// The paper knows one base type. Here every type that serves all sizes in time is a base type. u Q_b and u Q_b^{s+}
// become sums over base types.
type Upper struct {
	base   []bool
	region []int // by type, in classes
	// by region, in classes
	regions []regionRates
}

// regionRates are the queries/s of one machine that Eq. 15 needs when the auxiliary machines serve the sizes of one
// region. They are by type.
type regionRates struct {
	smallShare     float64   // f', the share of the queries in the region
	baseAll        []float64 // Q_b of base types
	baseLarge      []float64 // Q_b^{s+}, the same beyond the region
	auxiliarySmall []float64 // Q_a of auxiliary types, in the region
}

// NewUpper computes everything in the bound that does not depend on the numbers of machines. It does not keep m.
func NewUpper(m *Market) *Upper {
	u := &Upper{}
	for t := range m.Types {
		u.region = append(u.region, m.Region(t))
		u.base = append(u.base, m.IsBase(t))
	}
	u.regions = make([]regionRates, m.Mix.Classes())
	for r := range u.regions {
		x := &u.regions[r]
		for t := range m.Types {
			// Mean seconds of a query: in the region, and beyond it.
			var in, beyond float64
			small := 0.0
			for c := range m.Mix.Classes() {
				_, share := m.Mix.Class(c)
				if took := m.Types[t].Latency[c].Seconds(); c < r {
					in += share * took
					small += share
				} else {
					beyond += share * took
				}
			}
			x.smallShare = small
			x.baseAll = append(x.baseAll, 1/(in+beyond))
			x.baseLarge = append(x.baseLarge, (1-small)/beyond)
			few := 0.0
			if r > 0 {
				few = small / in
			}
			x.auxiliarySmall = append(x.auxiliarySmall, few)
		}
	}
	return u
}

// Of returns the bound of a pool in queries/s; 0 without a base machine, because then no machine serves the largest
// queries.
func (u *Upper) Of(p Pool) float64 {
	r := 0
	for t, n := range p {
		if n > 0 && !u.base[t] {
			r = max(r, u.region[t])
		}
	}
	return u.regions[r].bound(p, u.base)
}

// bound is Eq. 15. In a region without queries it is the rate of the base machines alone.
func (x *regionRates) bound(p Pool, base []bool) float64 {
	var all, large, few float64 // u Q_b, u Q_b^{s+} and the sum of v^i Q_a^i
	for t, n := range p {
		if base[t] {
			all += float64(n) * x.baseAll[t]
			large += float64(n) * x.baseLarge[t]
		} else {
			few += float64(n) * x.auxiliarySmall[t]
		}
	}
	if all == 0 || few == 0 || x.smallShare == 0 {
		return all
	}
	c := few * (1 - x.smallShare) / x.smallShare // Eq. 14
	if large <= c {
		return large / (1 - x.smallShare) // Eq. 12
	}
	return few/x.smallShare + (large-c)/large*all // Eq. 13
}
