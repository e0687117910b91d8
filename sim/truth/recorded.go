package truth

import (
	"github.com/sluice-serving/sluice/serving"
)

// Recorded is the content of a run that was recorded: how many items of each query reached each stage. It does not say
// how long they took, so that nothing balloons.
type Recorded struct {
	spec *serving.Spec
	// seen is by number of the query, from 1 on, and position in App.Stages; nil where the run does not tell.
	seen [][]int32
	last [][]int32 // by app: what the newest query of it showed that tells
}

// NewRecorded returns the content of the queries numbered 1, 2 and so on, as seen[0], seen[1] have it: by position in
// App.Stages, the items that reached the stage, 0 where it was passed over. A query of which nothing is known, because
// it was not answered, shows what the one of its app before it showed.
func NewRecorded(spec *serving.Spec, seen [][]int32) *Recorded {
	return &Recorded{spec: spec, seen: seen, last: make([][]int32, len(spec.Apps))}
}

// Frame implements Content.
func (r *Recorded) Frame(q *serving.Query) Frame {
	if at := int(q.ID) - 1; at >= 0 && at < len(r.seen) && len(r.seen[at]) == len(r.spec.Apps[q.App].Stages) {
		r.last[q.App] = r.seen[at]
	}
	return recorded{r.spec, r.last[q.App]}
}

type recorded struct {
	spec *serving.Spec
	seen []int32 // by position in the app's stages; nil for nothing known
}

// Fan implements Frame.
func (r recorded) Fan(s serving.StageID, k int) float64 {
	st := &r.spec.Stages[s]
	e := &st.Next[k]
	if r.seen == nil {
		return e.FanOut
	}
	from, to := int32(0), int32(0)
	for at, x := range r.spec.Apps[st.App].Stages {
		switch x {
		case s:
			from = r.seen[at]
		case e.To:
			to = r.seen[at]
		}
	}
	if from == 0 {
		return 0
	}
	return float64(to) / float64(from)
}

// Balloon implements Frame.
func (recorded) Balloon(serving.StageID) float64 { return 1 }
