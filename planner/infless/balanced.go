package infless

import (
	"math"
	"slices"
)

// often is the number of times that weights are found anew while a load is being served.
const reweighings = 40

// manner is what balanced looks after.
type packingRule uint8

const (
	byBeta packingRule = iota
	byDuals
	fewestServers
)

// balanced is a rule of ours in the place of Algorithm 1, for what measuring showed of that: the largest batch need not
// serve most for what it takes; weights by what threads and accelerators compute make the scarcer one cheap; and where
// an instance that fills a server counts as a thousand times better, servers are filled with what serves least. Here
// the function of which the largest part is unserved gets the next instance, in the configuration that serves most of
// the rest for what it takes at the weights of the hour: beta's as long as there is plenty, else those that spare what
// is scarce. Then it goes onto the server on which threads and accelerators are left in the ratio nearest to the
// cluster's. A load that is nearly served so gets the instance that just does it.
//
// Sparing spares from the first instance on, whatever there is plenty of: it carries most. Dense does so, too, and
// gives an instance to a server that is in use rather than to an empty one, also in a configuration that serves a
// little less: it uses the fewest servers, which is what Eq. 2 counts.
func (x *state) packBalanced(short []*function, how packingRule) {
	for _, f := range short {
		f.kept = len(f.running)
		f.rate, f.exhausted, f.undominated = f.up(), false, undominated(f.configurations)
	}
	c := x.cluster
	for {
		var w weights
		scarce := true
		if how == byBeta {
			w, scarce = scarcityWeights(c, short)
		} else {
			w, _ = dualWeights(c, short)
		}
		todo := 0.0
		for _, f := range short {
			if !f.exhausted {
				todo = max(todo, 1-f.rate/f.load)
			}
		}
		if todo <= tolerance {
			return
		}
		for until := todo*(1-1.0/reweighings) - tolerance; ; {
			var f *function
			most := 0.0
			for _, y := range short {
				if left := 1 - y.rate/y.load; !y.exhausted && left > max(most, tolerance) {
					f, most = y, left
				}
			}
			if f == nil || most < until {
				break
			}
			if !x.addInstance(f, w, scarce, how == fewestServers) {
				f.exhausted = true
			}
		}
	}
}

// unserved is the largest part of a function's load that is not served.
func unserved(functions []*function) (most float64) {
	for _, f := range functions {
		most = max(most, 1-f.up()/f.load)
	}
	return most
}

// withdraw takes away what balanced has given, and returns it by function.
func (x *state) withdraw(functions []*function) (out [][]placed) {
	for _, f := range functions {
		had := slices.Clone(f.running[f.kept:])
		x.releaseAll(had)
		f.running = f.running[:f.kept]
		out = append(out, had)
	}
	return out
}

// restore gives what was withdrawn.
func (x *state) restore(functions []*function, had [][]placed) {
	for k, f := range functions {
		for _, i := range had[k] {
			x.cluster.allocate(i.server, i.Configuration, i.accelerator)
		}
		f.running = append(f.running, had[k]...)
	}
}

// add gives a function an instance; false when nothing has room.
func (x *state) addInstance(f *function, w weights, scarce, packed bool) bool {
	if f.bounds.reached(len(f.running)) {
		return false
	}
	best, most := -1, 0.0
	left := f.load - f.rate
	each := f.minRate(len(f.running), left, x.roomFor(f))
	for k := range f.configurations {
		cfg := &f.configurations[k]
		if cfg.Up < each || !f.fills(cfg, left) {
			continue
		}
		takes := w.of(cfg)
		if cfg.Whole {
			takes = cfg.Resources
		}
		e := min(cfg.Up, left) / takes
		if e*usedBonus <= most {
			continue
		}
		room, used := x.hasRoom(cfg, packed)
		if used {
			e *= usedBonus
		}
		if room && e > most {
			best, most = k, e
		}
	}
	if best < 0 {
		return false
	}
	cfg := &f.configurations[best]
	at := x.evenestServer(cfg, w, scarce, packed)
	on, _ := x.cluster.allocate(at, cfg, -1)
	f.running = append(f.running, placed{Configuration: cfg, server: at, accelerator: on})
	f.rate += cfg.Up
	return true
}

// inUse is how much better an instance counts that needs no other server, where servers are packed densely.
const usedBonus = 1.25

// roomy tells whether an instance has room somewhere and, where that is wanted, on a server in use.
func (x *state) hasRoom(cfg *Configuration, packed bool) (room, used bool) {
	for k := len(x.cluster.groups) - 1; k >= 0; k-- {
		if g := x.cluster.groups[k]; g.fits(cfg) {
			if room, used = true, packed && !g.empty; used || !packed {
				break
			}
		}
	}
	return room, used
}

// nearest returns the server on which what is left after an instance is most evenly worth threads and accelerators; of
// equals the one of which least is left, and that alone counts while nothing is scarce: servers stay empty. Where they
// are packed those in use come first.
func (x *state) evenestServer(cfg *Configuration, w weights, scarce, packed bool) int32 {
	var best *group
	least := math.Inf(1)
	for _, g := range x.cluster.groups {
		if !g.fits(cfg) {
			continue
		}
		if !scarce {
			best = g
			break
		}
		off := math.Abs(w.thread*float64(g.threads-cfg.Threads) - w.percent*float64(g.percent-cfg.Percent))
		if packed && g.empty {
			off += 1
		}
		if off < least-1e-12 {
			best, least = g, off
		}
	}
	return best.servers[len(best.servers)-1]
}
