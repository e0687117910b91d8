package scrooge

import (
	"math"
	"math/rand/v2"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// content is the content of the frames of a session. The level of a client's video determines how many items a frame
// sends along an edge, and how long recurrent models take (§2).
type content struct {
	*session
	rng *rand.Rand
}

func (s *session) content(seed uint64) truth.Content {
	return &content{s, workload.Rand(seed, "content of "+s.graph.name)}
}

// Frame implements truth.Content.
func (c *content) Frame(q *serving.Query) truth.Frame {
	return &frame{graph: c.graph, level: c.clients[q.Stream-1].level(q.Arrived), chance: c.rng.Float64()}
}

// frame is the content of one frame.
type frame struct {
	graph         *graph
	level, chance float64
}

// Fan implements truth.Frame. It returns a whole number, whose mean is that of the level.
func (f *frame) Fan(s serving.StageID, k int) float64 {
	return math.Floor(f.graph.stages[s].next[k].meanItems(f.level) + f.chance)
}

// Balloon implements truth.Frame.
func (f *frame) Balloon(s serving.StageID) float64 {
	b := &f.graph.stages[s].model.balloon
	return b[0] + (b[1]-b[0])*f.level
}
