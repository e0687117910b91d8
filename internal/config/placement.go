package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-serving/sluice/serving"
)

// placement turns the file's placements into instances, or proposes some.
func (r *resolver) placement() {
	if len(r.f.Placement) == 0 {
		r.propose()
		return
	}
	r.explicitPlacement()
	r.cutMachines()
	r.everyStageRuns()
	r.memory()
}

// propose puts every stage on every worker, with those of its variants that its memory holds at all. The instances of a
// worker share it: each run has all of its threads, and they take turns. Which variants are loaded beside each other,
// and whether they are fast enough, is for the planner to decide.
func (r *resolver) propose() {
	s := r.w.Spec
	r.w.Proposed = true
	fits := func(v serving.VariantID, d serving.DeviceTypeID) bool {
		memory := s.DeviceTypes[d].MemoryBytes
		return memory <= 0 || s.Variants[v].MemoryBytes <= memory
	}
	for w := range s.Workers {
		for st := range s.Stages {
			inst := Instance{Worker: serving.WorkerID(w), Stage: serving.StageID(st)}
			for _, v := range s.Stages[st].Variants {
				if fits(v, s.Workers[w].DeviceType) {
					inst.Variants = append(inst.Variants, v)
				}
			}
			if len(inst.Variants) > 0 {
				r.w.Placement = append(r.w.Placement, inst)
			}
		}
	}
	r.tooLarge(fits)
}

// tooLarge warns of variants that the memory of some kinds of machine does not hold, and reports stages of which it
// holds none anywhere.
func (r *resolver) tooLarge(fits func(serving.VariantID, serving.DeviceTypeID) bool) {
	s := r.w.Spec
	for st := range s.Stages {
		anywhere := false
		for _, v := range s.Stages[st].Variants {
			var not []string
			for d := range s.DeviceTypes {
				switch id := serving.DeviceTypeID(d); {
				case !slices.ContainsFunc(s.Workers, func(w serving.Worker) bool { return w.DeviceType == id }):
				case fits(v, id):
					anywhere = true
				default:
					not = append(not, fmt.Sprintf("%q (%v)", s.DeviceTypes[d].Name, Size(s.DeviceTypes[d].MemoryBytes)))
				}
			}
			if len(not) > 0 {
				r.w.warnf("variant %q needs %v of memory: it is not placed on device type %s", s.Variants[v].Name,
					Size(s.Variants[v].MemoryBytes), strings.Join(not, " and "))
			}
		}
		if !anywhere {
			r.fitsNowhere(serving.StageID(st))
		}
	}
}

// fitsNowhere reports a stage of which no machine holds a variant, with the least memory that would.
func (r *resolver) fitsNowhere(st serving.StageID) {
	s := r.w.Spec
	small := slices.MinFunc(s.Stages[st].Variants, func(a, b serving.VariantID) int {
		return cmp.Compare(s.Variants[a].MemoryBytes, s.Variants[b].MemoryBytes)
	})
	large := slices.MaxFunc(s.Workers, func(a, b serving.Worker) int {
		return cmp.Compare(s.DeviceTypes[a.DeviceType].MemoryBytes, s.DeviceTypes[b.DeviceType].MemoryBytes)
	})
	d := &s.DeviceTypes[large.DeviceType]
	r.c.addf(at("apps", int(s.Stages[st].App)), "no variant of stage %q fits into the memory of any worker: the "+
		"smallest, %q, needs %v, and device type %q has most, %v. The least change that mends it is memory of %v for "+
		"device type %q", s.Stages[st].Name, s.Variants[small].Name, Size(s.Variants[small].MemoryBytes), d.Name,
		Size(d.MemoryBytes), Size(s.Variants[small].MemoryBytes), d.Name)
}

func (r *resolver) explicitPlacement() {
	s := r.w.Spec
	for i := range r.f.Placement {
		p, path := &r.f.Placement[i], at("placement", i)
		app := slices.IndexFunc(s.Apps, func(a serving.App) bool { return a.Name == p.App })
		stage := s.Apps[app].Stages[0]
		for _, st := range s.Apps[app].Stages {
			if s.Stages[st].Name == p.Stage {
				stage = st
			}
		}
		inst := Instance{Stage: stage, Slots: p.Slots, Cores: p.Cores, Limit: p.BatchLimit, Share: p.Weight}
		if len(p.Variants) == 0 {
			inst.Variants = slices.Clone(s.Stages[stage].Variants)
		}
		for _, name := range p.Variants {
			for _, v := range s.Stages[stage].Variants {
				if s.Variants[v].Name == name {
					inst.Variants = append(inst.Variants, v)
				}
			}
		}
		for _, v := range inst.Variants {
			if p.BatchLimit > s.Variants[v].MaxBatch {
				r.c.addf(path+".batch_limit", "is %d, but variant %q takes at most %d items", p.BatchLimit,
					s.Variants[v].Name, s.Variants[v].MaxBatch)
			}
		}
		for w := range s.Workers {
			if s.Workers[w].Name == p.Worker || r.f.Workers[r.entry[w]].Name == p.Worker {
				one := inst
				one.Worker = serving.WorkerID(w)
				r.w.Placement = append(r.w.Placement, one)
			}
		}
	}
	slices.SortStableFunc(r.w.Placement, func(a, b Instance) int { return int(a.Worker) - int(b.Worker) })
}

// everyStageRuns reports stages without an instance: as a warning where a planner may add one. A system that is given
// by its name may have such a planner; this package does not know.
func (r *resolver) everyStageRuns() {
	s := r.w.Spec
	for st := range s.Stages {
		sys := r.w.Apps[s.Stages[st].App].System
		if slices.ContainsFunc(r.w.Placement, func(i Instance) bool { return int(i.Stage) == st && r.answers(&i) }) {
			continue
		}
		stage, app := s.Stages[st].Name, s.Apps[s.Stages[st].App].Name
		if sys.Name != "" || sys.Planner != "" && sys.Planner != "static" {
			r.w.warnf("placement: no instance serves stage %q of app %q: it gets no answer unless the system's "+
				"planner adds one", stage, app)
			continue
		}
		r.c.addf("placement", "no instance serves stage %q of app %q", stage, app)
	}
}

// answers tells whether an instance has a variant that reaches its app's accuracy floor.
func (r *resolver) answers(i *Instance) bool {
	return slices.ContainsFunc(i.Variants, func(v serving.VariantID) bool { return !r.w.Spec.BelowFloor(v) })
}

// memory reports workers on which more was placed than fits.
func (r *resolver) memory() {
	s := r.w.Spec
	need := make([]int64, len(s.Workers))
	for _, i := range r.w.Placement {
		for _, v := range i.Variants {
			need[i.Worker] += s.Variants[v].MemoryBytes
		}
	}
	for w, n := range need {
		if d := s.DeviceTypes[s.Workers[w].DeviceType]; d.MemoryBytes > 0 && n > d.MemoryBytes {
			r.c.addf("placement", "worker %q: the variants placed on it need %d bytes of memory, device type %q has %d",
				s.Workers[w].Name, n, d.Name, d.MemoryBytes)
			return
		}
	}
}
