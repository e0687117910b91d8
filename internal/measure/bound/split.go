package bound

import (
	"encoding/binary"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/dag"
	"github.com/sluice-serving/sluice/serving/pipeline"
)

// level is the rates of a stage whose batches take at most a number of steps.
type level struct {
	steps int // the least with these rates
	rates int // index into rateTable.by; -1 for a stage that is passed over
}

// splits returns the ways to divide the time of a class between the stages of a path: for each, by stage, the rates of
// batches that take no longer than their part. None of them has faster batches at every stage than another. A batch
// counts with its time rounded down to steps.
func (p *program) splits(x *class, path *path) [][]int {
	if p.crowds == nil || len(path.variants) == 1 {
		return p.unsplit(x, path)
	}
	g := p.crowds[x.app].graph
	levels := make([][]level, len(path.variants))
	key := binary.LittleEndian.AppendUint32(nil, uint32(x.app))
	for at, v := range path.variants {
		if x.items[at] == 0 {
			levels[at] = []level{{0, -1}}
		} else {
			last := -1
			for n := 1; n <= p.steps; n++ {
				// Rounded down, a batch of up to n steps takes n-1.
				r := p.ratesOf(v, x, at, x.within*time.Duration(n)/time.Duration(p.steps))
				if r >= 0 && r != last {
					levels[at] = append(levels[at], level{n - 1, r})
					last = r
				}
			}
		}
		for _, l := range levels[at] {
			key = binary.LittleEndian.AppendUint32(key, uint32(l.steps))
			key = binary.LittleEndian.AppendUint32(key, uint32(l.rates))
		}
		key = append(key, 0xff)
	}
	known, ok := p.splitsOf[string(key)]
	if !ok {
		known = maximal(g, levels, p.steps)
		p.splitsOf[string(key)] = known
	}
	return known
}

// unsplit returns the rates of the stages of a path where each may take all the time.
func (p *program) unsplit(x *class, path *path) [][]int {
	rates := make([]int, len(path.variants))
	for at, v := range path.variants {
		if rates[at] = p.ratesOf(v, x, at, x.within); rates[at] < 0 && x.items[at] > 0 {
			return nil
		}
	}
	return [][]int{rates}
}

// maximal lists the rates of all choices of levels whose longest way is in time and that no higher level is left for.
func maximal(g *pipeline.Graph, levels [][]level, steps int) (out [][]int) {
	chosen := make([]int, len(levels))
	length := make([]float64, len(levels))
	inTime := func() bool {
		for at, l := range chosen {
			length[at] = float64(levels[at][l].steps)
		}
		before, _ := dag.Around(g.Following(), length)
		for at := range before {
			if before[at]+length[at] > float64(steps-1) {
				return false
			}
		}
		return true
	}
	var choose func(at int)
	choose = func(at int) {
		if at == len(levels) {
			for at := range chosen {
				if chosen[at]+1 < len(levels[at]) {
					chosen[at]++
					more := inTime()
					chosen[at]--
					if more {
						return
					}
				}
			}
			rates := make([]int, len(chosen))
			for at, l := range chosen {
				rates[at] = levels[at][l].rates
			}
			out = append(out, rates)
			return
		}
		for l := range levels[at] {
			chosen[at] = l
			if !inTime() {
				break
			}
			choose(at + 1)
		}
		chosen[at] = 0
	}
	for _, l := range levels {
		if len(l) == 0 {
			return nil
		}
	}
	choose(0)
	return out
}
