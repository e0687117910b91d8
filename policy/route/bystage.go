package route

import "github.com/sluice-serving/sluice/serving"

// byStage is what a rule keeps of each stage. A stage whose place in the tables is used again begins anew.
type byStage[S any] struct {
	stages []S
	fresh  S // what a stage begins with
}

func (x *byStage[S]) of(s serving.StageID) *S {
	for len(x.stages) <= int(s) {
		x.stages = append(x.stages, x.fresh)
	}
	return &x.stages[s]
}

// Forget implements engine.Forgetter.
func (x *byStage[S]) Forget(_ serving.Time, f *serving.Fresh) {
	serving.Forget(x.stages, f.Stages, x.fresh)
}
