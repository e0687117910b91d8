package infless

import (
	"context"
	"fmt"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/internal/planner/packing"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// CapacityBound bounds what a cluster carries (ours): the largest multiple of the request's rates if instances could be
// cut to any size and the machines of a device type shared their resources. No plan of the planner with these options
// carries more. It is a linear program with a column for each configuration and device type. What runs does not count.
func CapacityBound(ctx context.Context, p *packing.Planner, solver milp.Solver, r plan.Request) (float64, error) {
	x, err := p.Read(plan.Request{Spec: r.Spec, Rates: r.Rates, Mixes: r.Mixes, Beliefs: r.Beliefs})
	if err != nil {
		return 0, err
	}
	m := &milp.Program{Maximize: true}
	multiple := m.Column(milp.Column{Objective: 1, Upper: milp.Inf})
	pools := resourcePools(x)
	for k := range x.Functions {
		f := &x.Functions[k]
		if f.Load <= 0 {
			continue
		}
		serves := []milp.Term{{Column: multiple, Coef: -f.Load}}
		for c := range f.Configurations {
			for t := range pools {
				if y := &pools[t]; y.hosts(&f.Configurations[c]) {
					serves = append(serves, milp.Term{
						Column: y.column(m, &f.Configurations[c]), Coef: f.Configurations[c].Up,
					})
				}
			}
		}
		m.Row(0, milp.Inf, serves...)
	}
	for t := range pools {
		pools[t].rows(m)
	}
	s, err := solver.Solve(ctx, m, milp.Limits{Relax: true})
	if err != nil {
		return 0, err
	}
	if s.Status != milp.Optimal {
		return 0, fmt.Errorf("what the cluster carries: the linear program ended as %v", s.Status)
	}
	return s.Objective, nil
}

// resourcePool is all machines of a device type as one.
type resourcePool struct {
	device                          serving.DeviceTypeID
	each                            *serving.DeviceType
	machines                        int
	threads, percent, memory, whole []milp.Term // what instances take
}

// resourcePools returns the pools of the device types that have a machine, in the order of the machines.
func resourcePools(x *packing.State) (out []resourcePool) {
	for _, s := range x.Cluster.Servers {
		at := 0
		for at < len(out) && out[at].device != s.Device {
			at++
		}
		if at == len(out) {
			out = append(out, resourcePool{device: s.Device, each: &x.Spec.DeviceTypes[s.Device]})
		}
		out[at].machines++
	}
	return out
}

// hosts reports whether a machine of the pool has room for an instance while it is empty.
func (y *resourcePool) hosts(c *packing.Configuration) bool {
	if c.Whole {
		return c.Device == y.device
	}
	return c.Threads <= y.each.Cores && (c.Percent == 0 || y.each.Accelerators > 0)
}

// memoryUnit keeps the coefficients of memory near those of threads.
const memoryUnit = 1 << 20

// column adds the number of instances of a configuration in the pool.
func (y *resourcePool) column(m *milp.Program, c *packing.Configuration) int {
	j := m.Column(milp.Column{Upper: milp.Inf})
	if c.Whole {
		y.whole = append(y.whole, milp.Term{Column: j, Coef: 1})
		return j
	}
	add := func(to *[]milp.Term, n float64) {
		if n > 0 {
			*to = append(*to, milp.Term{Column: j, Coef: n})
		}
	}
	add(&y.threads, float64(c.Threads))
	add(&y.percent, float64(c.Percent))
	add(&y.memory, float64(c.Memory)/memoryUnit)
	return j
}

// rows adds the resources of the pool.
func (y *resourcePool) rows(m *milp.Program) {
	n := float64(y.machines)
	m.Row(-milp.Inf, n*float64(y.each.Cores), y.threads...)
	m.Row(-milp.Inf, n*100*float64(y.each.Accelerators), y.percent...)
	m.Row(-milp.Inf, n, y.whole...)
	if y.each.MemoryBytes > 0 {
		m.Row(-milp.Inf, n*float64(y.each.MemoryBytes)/memoryUnit, y.memory...)
	}
}
