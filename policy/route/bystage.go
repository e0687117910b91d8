package route

import "github.com/sluice-serving/sluice/serving"

// ByStage is what a rule keeps of each stage. A stage whose place in the tables is used again begins anew.
type ByStage[S any] struct {
	stages []S
	Fresh  S // what a stage begins with
}

// Of returns what is kept of a stage.
func (x *ByStage[S]) Of(s serving.StageID) *S {
	for len(x.stages) <= int(s) {
		x.stages = append(x.stages, x.Fresh)
	}
	return &x.stages[s]
}

// Forget implements engine.Forgetter.
func (x *ByStage[S]) Forget(_ serving.Time, f *serving.Fresh) {
	serving.Forget(x.stages, f.Stages, x.Fresh)
}
