package truth

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Content is the content of simulated queries: how many items each stage finds and how long it takes (Scrooge §2,
// "Input complexity"). Without content every item sends as many items along an edge as its FanOut says, and run times
// are those of the machines.
type Content interface {
	// Frame returns the content of one query. It is called once for every query, on arrival, in the order of arrival.
	Frame(q *serving.Query) Frame
}

// Frame is the content of one query. All its stages and all its items have the same content.
type Frame interface {
	// Fan returns the query's scaling factor: the items that each item at stage s sends along edge k of Stage.Next.
	Fan(s serving.StageID, k int) float64
	// Balloon returns the query's ballooning factor at stage s: the factor on its run time, more than 0.
	Balloon(s serving.StageID) float64
}

// Lengthy is a Frame that knows how long items are at stages after the first.
type Lengthy interface {
	// Length returns the length of the query's items at a stage; 0 where it is not known.
	Length(s serving.StageID) int32
}

// ItemsSent returns how many items the items offset to offset+items-1 of a query at stage s send along edge k. Over all
// parts of a query the results add up to what the whole query sends: a fraction of an item is sent by the part that
// completes it.
func ItemsSent(f Frame, s serving.StageID, k int, offset, items int32) int32 {
	fan := f.Fan(s, k)
	return int32(math.Round(float64(offset+items)*fan) - math.Round(float64(offset)*fan))
}

// Ballooned returns a run time multiplied by factor, at least 1 ns.
func Ballooned(took time.Duration, factor float64) time.Duration {
	return max(time.Duration(float64(took)*factor), 1)
}
