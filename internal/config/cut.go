package config

import (
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/serving"
)

// Cut is a part of a machine that a placement gives an instance by its cores. Its device type, Placed, is added to the
// spec: the latency of a part is measured, or follows from that of the machine, as for any other part.
type Cut struct {
	Part  serving.DeviceTypeID
	Of    serving.DeviceTypeID // the machine's
	Cores int                  // threads of a run
	Slots int                  // runs at once; together they take the part's threads
}

// cutMachines gives the instances that ask for cores a part of their workers. On such a worker the others get an equal
// part, at least one thread, of what is left. A worker without instances that ask for cores is shared by all, and so is
// one whose instances ask for more than it has: no two of them have threads of their own then.
func (r *resolver) cutMachines() {
	s := r.w.Spec
	taken, open := make([]int, len(s.Workers)), make([]int, len(s.Workers))
	for _, i := range r.w.Placement {
		taken[i.Worker] += i.Cores * i.Slots
		if i.Cores == 0 {
			open[i.Worker] += i.Slots
		}
	}
	asked, used := slices.Clone(taken), slices.Clone(taken)
	for n := range r.w.Placement {
		i := &r.w.Placement[n]
		if asked[i.Worker] > 0 && i.Cores == 0 {
			i.Cores = max(1, (s.DeviceTypes[s.Workers[i.Worker].DeviceType].Cores-taken[i.Worker])/open[i.Worker])
			used[i.Worker] += i.Cores * i.Slots
		}
	}
	for n := range r.w.Placement {
		i := &r.w.Placement[n]
		d := s.Workers[i.Worker].DeviceType
		has := &s.DeviceTypes[d]
		switch {
		case i.Cores == 0 || i.Cores*i.Slots == has.Cores && used[i.Worker] == has.Cores && i.Slots == 1:
			i.Cores = 0 // all of the worker
		case used[i.Worker] > has.Cores:
			i.Cores = 0
		default:
			i.Part = int32(r.cut(d, i.Cores, i.Slots)) + 1
		}
	}
	for w, n := range used {
		if has := s.DeviceTypes[s.Workers[w].DeviceType].Cores; n > has && (w == 0 || r.entry[w] != r.entry[w-1]) {
			r.w.warnf("worker %q: its instances ask for %d threads, it has %d: they take turns, and each run has all "+
				"of them", s.Workers[w].Name, n, has)
		}
	}
}

// cut returns the part of a machine with threads for so many runs at once, which is added where it is new.
func (r *resolver) cut(of serving.DeviceTypeID, cores, slots int) serving.DeviceTypeID {
	for _, c := range r.w.Cuts {
		if c.Of == of && c.Cores == cores && c.Slots == slots {
			return c.Part
		}
	}
	s := r.w.Spec
	name := fmt.Sprintf("%s/%d", s.DeviceTypes[of].Name, cores)
	if slots > 1 {
		name = fmt.Sprintf("%s/%dx%d", s.DeviceTypes[of].Name, slots, cores)
	}
	id := serving.DeviceTypeID(len(s.DeviceTypes))
	s.DeviceTypes = append(s.DeviceTypes, serving.DeviceType{
		Name: name, Cores: cores * slots, Part: true, Placed: true,
	})
	r.w.Cuts = append(r.w.Cuts, Cut{id, of, cores, slots})
	return id
}
