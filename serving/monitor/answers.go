package monitor

import "github.com/sluice-serving/sluice/serving"

// answers are those that an app has given since the start.
type answers struct {
	count    uint64
	accuracy float64 // sum
}

// Answer counts an answer of some accuracy, in [0, 1].
func (r *Rates) Answer(app serving.AppID, accuracy float64) {
	x := &r.answers[app]
	x.count, x.accuracy = x.count+1, x.accuracy+accuracy
}

// Answers returns how many answers an app has given since the start, and the sum of their accuracies.
func (r *View) Answers(app serving.AppID) (count uint64, accuracy float64) {
	x := &r.answers[app]
	return x.count, x.accuracy
}
