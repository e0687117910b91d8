package truth

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Content is what is in the queries: how much a stage finds, and how long it takes over it (Scrooge §2, "Input
// complexity"). Without one every item sends as many as its edge's FanOut says, rounded by the task, and run times are
// the machines'.
type Content interface {
	// Frame returns what is in a query. It is called once for every query, on arrival, in the order of arrival.
	Frame(q *serving.Query) Frame
}

// Frame is what is in one query. All stages of the query see the same, and so do all its items.
type Frame interface {
	// Fan returns the items that each item of the query at stage s sends along edge k of Stage.Next: the query's
	// scaling factor.
	Fan(s serving.StageID, k int) float64
	// Balloon returns the factor on the run time of stage s, more than 0: the query's ballooning factor.
	Balloon(s serving.StageID) float64
}

// ItemsSent returns how many items those from offset to offset+items of a query at stage s send along edge k. Parts of a
// query send together what the whole would: a fraction of an item is sent by the item that completes it.
func ItemsSent(f Frame, s serving.StageID, k int, offset, items int32) int32 {
	fan := f.Fan(s, k)
	return int32(math.Round(float64(offset+items)*fan) - math.Round(float64(offset)*fan))
}

// Ballooned returns a run time multiplied by a factor; at least 1 ns.
func Ballooned(took time.Duration, factor float64) time.Duration {
	return max(time.Duration(float64(took)*factor), 1)
}
