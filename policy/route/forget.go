package route

import "github.com/sluice-serving/sluice/serving"

// Rules with a state for each stage begin anew with a stage whose place in the tables is used again (engine.Forgetter).

// Forget implements engine.Forgetter.
func (o *Bands) Forget(_ serving.Time, f *serving.Fresh) {
	serving.Forget(o.stages, f.Stages, bandStage{})
}

// Forget implements engine.Forgetter.
func (o *FCFS) Forget(_ serving.Time, f *serving.Fresh) {
	serving.Forget(o.stages, f.Stages, fcfsStage{})
}

// Forget implements engine.Forgetter.
func (o *Matching) Forget(_ serving.Time, f *serving.Fresh) {
	serving.Forget(o.stages, f.Stages, matchingStage{})
}

// Forget implements engine.Forgetter.
func (o *MostAccurateFirst) Forget(_ serving.Time, f *serving.Fresh) {
	serving.Forget(o.stages, f.Stages, mostAccurateStage{rate: -1})
}

// Forget implements engine.Forgetter.
func (o *RoundRobin) Forget(_ serving.Time, f *serving.Fresh) { serving.Forget(o.turn, f.Stages, 0) }

// Forget implements engine.Forgetter.
func (o *Schedule) Forget(_ serving.Time, f *serving.Fresh) {
	serving.Forget(o.stages, f.Stages, scheduleStage{})
}

// Forget implements engine.Forgetter.
func (o *ShortestQueue) Forget(_ serving.Time, f *serving.Fresh) { serving.Forget(o.turn, f.Stages, 0) }

// Forget implements engine.Forgetter.
func (o *SlackFit) Forget(_ serving.Time, f *serving.Fresh) {
	serving.Forget(o.stages, f.Stages, slackFitStage{})
}

// Forget implements engine.Forgetter.
func (o *Threshold) Forget(_ serving.Time, f *serving.Fresh) {
	serving.Forget(o.stages, f.Stages, thresholdStage{})
}

// Forget implements engine.Forgetter.
func (o *Tidal) Forget(_ serving.Time, f *serving.Fresh) {
	serving.Forget(o.stages, f.Stages, tidalStage{})
}

// Forget implements engine.Forgetter.
func (o *Weighted) Forget(_ serving.Time, f *serving.Fresh) {
	serving.Forget(o.stages, f.Stages, weightedStage{})
}
