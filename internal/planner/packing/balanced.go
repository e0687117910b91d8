package packing

import (
	"math"
	"slices"
)

// reweighings is the number of times that weights are computed anew while a load is being served.
const reweighings = 40

// packingRule says by which weights packBalanced packs.
type packingRule uint8

const (
	// by beta as long as threads and accelerators are plentiful
	byBeta packingRule = iota
	// by dual weights from the first instance on: it carries most
	byDuals
	// by dual weights, onto servers in use where possible: it uses the fewest servers
	fewestServers
)

// packBalanced is a rule of ours in place of INFless' Algorithm 1. Measurements showed three weaknesses of that
// algorithm. The largest batch need not have the highest rate per resource. Weights by computing power make the scarcer
// resource cheap. An instance that fills a server counts a thousand times better, so servers are filled with
// inefficient instances.
//
// The function with the largest unserved part of its load gets the next instance, in the configuration that serves
// most of that part for its price. Prices are beta's as long as resources are plentiful, else weights that save the
// scarce resource. The instance goes onto the server that keeps threads and accelerators in the ratio nearest to the
// cluster's. A load that is nearly served gets the instance that just serves it.
//
// With byDuals prices follow scarcity from the first instance on. That carries the largest load. With fewestServers an
// instance goes onto a server in use rather than an empty one, also in a configuration that serves a little less: Eq. 2
// counts servers.
func (x *State) packBalanced(short []*Function, how packingRule) {
	for _, f := range short {
		f.kept = len(f.running)
		f.rate, f.exhausted, f.undominated = f.up(), false, undominated(f.Configurations)
	}
	c := x.Cluster
	for {
		var w weights
		scarce := true
		if how == byBeta {
			w, scarce = scarcityWeights(c, short)
		} else {
			w, _ = dualWeights(c, short)
		}
		unservedPart := 0.0
		for _, f := range short {
			if !f.exhausted {
				unservedPart = max(unservedPart, 1-f.rate/f.Load)
			}
		}
		if unservedPart <= Tolerance {
			return
		}
		for until := unservedPart*(1-1.0/reweighings) - Tolerance; ; {
			var f *Function
			most := 0.0
			for _, y := range short {
				if left := 1 - y.rate/y.Load; !y.exhausted && left > max(most, Tolerance) {
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

// unserved returns the largest unserved part of a function's load.
func unserved(functions []*Function) (most float64) {
	for _, f := range functions {
		most = max(most, 1-f.up()/f.Load)
	}
	return most
}

// withdraw removes the instances that packBalanced has added, and returns them by function.
func (x *State) withdraw(functions []*Function) (out [][]Placed) {
	for _, f := range functions {
		had := slices.Clone(f.running[f.kept:])
		x.releaseAll(had)
		f.running = f.running[:f.kept]
		out = append(out, had)
	}
	return out
}

// restore gives functions the instances that withdraw returned.
func (x *State) restore(functions []*Function, had [][]Placed) {
	for k, f := range functions {
		for _, i := range had[k] {
			x.Cluster.Allocate(i.Server, i.Configuration, i.Accelerator)
		}
		f.running = append(f.running, had[k]...)
	}
}

// addInstance gives a function one more instance, and returns false when none fits. With packed it prefers servers in
// use.
func (x *State) addInstance(f *Function, w weights, scarce, packed bool) bool {
	if f.Full(len(f.running)) {
		return false
	}
	best, most := -1, 0.0
	left := f.Load - f.rate
	each := f.MinRate(len(f.running), left, x.roomFor(f))
	for k := range f.Configurations {
		cfg := &f.Configurations[k]
		if cfg.Up < each || !f.Fills(cfg, left) {
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
	cfg := &f.Configurations[best]
	at := x.mostBalancedServer(cfg, w, scarce, packed)
	on, _ := x.Cluster.Allocate(at, cfg, -1)
	f.running = append(f.running, Placed{Configuration: cfg, Server: at, Accelerator: on})
	f.rate += cfg.Up
	return true
}

// usedBonus is the factor by which an instance on a server in use is preferred, where servers are packed.
const usedBonus = 1.25

// hasRoom reports whether an instance fits somewhere and, with packed, whether it fits on a server in use.
func (x *State) hasRoom(cfg *Configuration, packed bool) (room, used bool) {
	for k := len(x.Cluster.Groups) - 1; k >= 0; k-- {
		if g := x.Cluster.Groups[k]; g.Fits(cfg) {
			if room, used = true, packed && !g.empty; used || !packed {
				break
			}
		}
	}
	return room, used
}

// mostBalancedServer returns the server on which the prices of the threads and of the accelerators that are left differ
// least. Of equal ones it takes the fullest. As long as nothing is scarce, only fullness counts, so that other servers
// stay empty. With packed, servers in use come first.
func (x *State) mostBalancedServer(cfg *Configuration, w weights, scarce, packed bool) int32 {
	var best *Group
	least := math.Inf(1)
	for _, g := range x.Cluster.Groups {
		if !g.Fits(cfg) {
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
	return best.Servers[len(best.Servers)-1]
}
