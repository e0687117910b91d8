package truth

import (
	"github.com/sluice-serving/sluice/serving"
)

// Recorded is the content of a recorded run: how many items of each query reached each stage, and how long they were. A
// record does not say how long stages took, so its ballooning factors are 1.
type Recorded struct {
	spec *serving.Spec
	// seen is by number of the query minus 1, then by position in App.Stages; nil for queries without a record.
	seen [][]StageSeen
	last [][]StageSeen // by app: the entry of seen of its newest query with a record
}

// StageSeen is what a record says of a query at a stage: items, 0 where it was passed over, and the length of the
// longest, 0 where it is not known.
type StageSeen struct{ Items, Length int32 }

// NewRecorded returns the content of queries numbered 1, 2 and so on. seen[id-1] has what is known of it at each stage,
// by position in App.Stages. A query without a record, because it was not answered, gets the content of the query of
// its app before it. spec and seen are kept.
func NewRecorded(spec *serving.Spec, seen [][]StageSeen) *Recorded {
	return &Recorded{spec: spec, seen: seen, last: make([][]StageSeen, len(spec.Apps))}
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
	seen []StageSeen // by position in the app's stages; nil without any record
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
			from = r.seen[at].Items
		case e.To:
			to = r.seen[at].Items
		}
	}
	if from == 0 {
		return 0
	}
	return float64(to) / float64(from)
}

// Length implements Lengthy.
func (r recorded) Length(s serving.StageID) int32 {
	for at, x := range r.spec.Apps[r.spec.Stages[s].App].Stages {
		if x == s && r.seen != nil {
			return r.seen[at].Length
		}
	}
	return 0
}

// Balloon implements Frame.
func (recorded) Balloon(serving.StageID) float64 { return 1 }
