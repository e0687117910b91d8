package engine

import (
	"maps"
	"slices"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// A backend that fails is fast at it: without a rule it is always free, and gets all the traffic. A query that breaks
// whatever it runs on must not be held against a backend either. So an instance is blamed for a broken batch only if
// all of the batch's tasks that were run again were served by other instances. Each blame scores blamePoints, each
// batch that ends well takes one point off. At ejectAt the instance is ejected: after three failures in a row, or
// when more than a third of its batches fail.
const (
	blamePoints = 2
	ejectAt     = 6
	// onProbation is the score of an instance that comes back after an ejection: one more failure ejects it again.
	// passedAfter is the number of batches that have to end well until that is forgotten and its share is whole.
	onProbation = ejectAt - blamePoints
	passedAfter = 20
)

// faults finds the instances that fail what others serve.
type faults struct {
	*world
	suspicions map[fleet.Ref]*suspicion // by task that runs again; empty while nothing fails
	conducts   map[serving.InstanceID]*conduct
	due        []serving.InstanceID // to be ejected
}

// suspicion is a batch that broke.
type suspicion struct {
	on   serving.InstanceID
	open int // tasks that have not been run again
	// served is set if another instance served one of them, cleared if one broke again or was served by the same
	// instance.
	served, cleared bool
}

// conduct is what counts against an instance: points, and the batches that have ended well since the last.
type conduct struct {
	points, good int
	trial        bool // it has come back and gets its share step by step
}

func newFaults(w *world) *faults {
	return &faults{
		world: w, suspicions: make(map[fleet.Ref]*suspicion), conducts: make(map[serving.InstanceID]*conduct),
	}
}

// suspect notes that a task is run again, because its batch broke. s is that batch's.
func (f *faults) suspect(ref fleet.Ref, s *suspicion) {
	s.open++
	f.suspicions[ref] = s
}

// isSuspect reports whether a task has run and its batch broke.
func (f *faults) isSuspect(ref fleet.Ref) bool { return f.suspicions[ref] != nil }

// served notes that an instance served a task, broke that its batch broke, and dropped that it ends without a run.
func (f *faults) served(ref fleet.Ref, by serving.InstanceID) {
	if s := f.suspicions[ref]; s != nil {
		s.served = s.served || by != s.on
		s.cleared = s.cleared || by == s.on
		f.concluded(ref, s)
	}
}

func (f *faults) broke(ref fleet.Ref) {
	if s := f.suspicions[ref]; s != nil {
		s.cleared = true
		f.concluded(ref, s)
	}
}

func (f *faults) dropped(ref fleet.Ref) {
	if len(f.suspicions) == 0 {
		return
	}
	if s := f.suspicions[ref]; s != nil {
		f.concluded(ref, s)
	}
}

func (f *faults) concluded(ref fleet.Ref, s *suspicion) {
	delete(f.suspicions, ref)
	if s.open--; s.open == 0 && s.served && !s.cleared {
		f.blame(s.on)
	}
}

func (f *faults) blame(id serving.InstanceID) {
	if f.fleet.Instance(id) == nil {
		return
	}
	r := f.conducts[id]
	if r == nil {
		maps.DeleteFunc(f.conducts, func(x serving.InstanceID, _ *conduct) bool { return f.fleet.Instance(x) == nil })
		r = &conduct{}
		f.conducts[id] = r
	}
	r.good = 0
	if r.points += blamePoints; r.points >= ejectAt && !slices.Contains(f.due, id) {
		f.due = append(f.due, id)
	}
}

// endedWell notes a batch that ended well. It reports whether the instance's former ejections are forgotten.
func (f *faults) endedWell(id serving.InstanceID) (passed bool) {
	r := f.conducts[id]
	if r == nil {
		return false
	}
	r.points = max(0, r.points-1)
	if r.good++; r.good < passedAfter {
		return false
	}
	delete(f.conducts, id)
	return true
}

// cameBack puts an instance on trial whose predecessors at its place were ejected, or were lost in quick succession.
func (f *faults) cameBack(id serving.InstanceID, ejected bool) {
	c := &conduct{trial: true}
	if ejected {
		c.points = onProbation
	}
	f.conducts[id] = c
}

// onTrial reports whether an instance gets its share step by step.
func (f *faults) onTrial(id serving.InstanceID) bool {
	c := f.conducts[id]
	return c != nil && c.trial
}

// forget drops what counts against an instance that is gone.
func (f *faults) forget(id serving.InstanceID) { delete(f.conducts, id) }

// ejected returns an instance that is to be ejected, nil without one. The last ready instance of a stage is never
// ejected: nothing else could serve.
func (f *faults) ejected() *fleet.Instance {
	for len(f.due) > 0 {
		id := f.due[0]
		f.due = f.due[1:]
		if i := f.fleet.Instance(id); i != nil && i.State() == fleet.Ready && f.replaceable(i) {
			return i
		}
	}
	return nil
}

// replaceable reports whether another instance of the same stage is ready.
func (f *faults) replaceable(i *fleet.Instance) bool {
	return slices.ContainsFunc(f.fleet.Ready(i.Stage()), func(o *fleet.Instance) bool { return o != i })
}

// elsewhere returns the ready instance with the fewest tasks, another than i, that may serve a task. Without a ready
// one it returns one that rests; nil if there is none either.
func (f *faults) elsewhere(ref fleet.Ref, i *fleet.Instance) *fleet.Instance {
	var best *fleet.Instance
	for _, x := range f.fleet.Live() {
		if x == i || x.Stage() != i.Stage() || x.State() != fleet.Ready || !f.fleet.CanServe(x, f.fleet.Task(ref)) {
			continue
		}
		if best == nil || best.RestUntil() > 0 && x.RestUntil() == 0 ||
			(best.RestUntil() > 0) == (x.RestUntil() > 0) && x.Outstanding() < best.Outstanding() {
			best = x
		}
	}
	return best
}
