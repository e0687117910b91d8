package scrooge

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// A session (§4.2): the number of clients, and its length.
const (
	clients = 12
	span    = 1000 * time.Second
	// usualLevel is the mean level of content over the kinds of videos. Graphs are configured with it.
	usualLevel = 0.444
)

// video is a kind of content, with levels from 0 to 1.
type video struct {
	name          string
	least, most   float64
	scene, change time.Duration // mean time at a level, and time of the change to the next
}

func videos() (out []video, err error) {
	err = data.Read("videos.csv", "video,least,most,scene_s,change_s", 1, func(key []string, v []float64) error {
		out = append(out, video{key[0], v[0], v[1], seconds(v[2]), seconds(v[3])})
		return nil
	})
	return out, err
}

func seconds(x float64) time.Duration { return time.Duration(x * float64(time.Second)) }

// client sends frames at a constant rate from From to Until.
type client struct {
	workload.Client
	scenes []scene
}

// scene is a level of a client's video. It lasts until the next scene begins.
type scene struct {
	begins, reached serving.Time // beginning and end of the change to the level
	level           float64
}

// level returns the level of content at time t.
func (c *client) level(t serving.Time) float64 {
	at, _ := slices.BinarySearchFunc(c.scenes, t, func(s scene, t serving.Time) int {
		return cmp.Compare(s.begins, t+1)
	})
	s := &c.scenes[max(at-1, 0)]
	if t >= s.reached || at < 2 {
		return s.level
	}
	before, part := c.scenes[at-2].level, float64(t-s.begins)/float64(s.reached-s.begins)
	return before + (s.level-before)*part
}

// session is the clients that use a graph over time.
type session struct {
	graph   *graph
	clients []client
}

// newSession draws a session: clients join and leave at random times, with random rates within the graph's bounds.
func newSession(g *graph, seed uint64) (*session, error) {
	kinds, err := videos()
	if err != nil {
		return nil, err
	}
	s := &session{graph: g}
	for k := range clients {
		rng := workload.Rand(seed, fmt.Sprintf("client %d of %s", k, g.name))
		a, b := serving.Time(rng.Int64N(int64(span))), serving.Time(rng.Int64N(int64(span)))
		c := client{
			Client: workload.Client{
				Stream: uint64(k + 1), Rate: float64(int(g.low) + rng.IntN(int(g.high-g.low)+1)), From: min(a, b),
				Until: max(a, b),
			},
		}
		c.scenes = kinds[k%len(kinds)].drawScenes(c.From, c.Until, rng)
		s.clients = append(s.clients, c)
	}
	return s, nil
}

// drawScenes draws the scenes of a video between two times. They last for exponential times.
func (v *video) drawScenes(from, to serving.Time, rng *rand.Rand) (out []scene) {
	level := func() float64 { return v.least + (v.most-v.least)*rng.Float64() }
	out = append(out, scene{begins: from, reached: from, level: level()})
	for t := from; t < to; {
		t = t.Add(time.Duration(rng.ExpFloat64() * float64(v.scene)))
		s := scene{begins: t, reached: t.Add(v.change), level: level()}
		out = append(out, s)
		t = s.reached
	}
	return out
}

// frames returns the arrivals of all clients.
func (s *session) frames() workload.Source {
	var all []workload.Source
	for i := range s.clients {
		c := &s.clients[i]
		all = append(all, &workload.App{
			Times: workload.NewFrames(c.Client), Template: workload.Arrival{
				Items: 1, Stream: c.Stream, Variant: serving.None, Sample: -1,
			},
		})
	}
	return workload.Merge(all...)
}

// workloadClients returns the clients in the order in which they join.
func (s *session) workloadClients() []workload.Client {
	var out []workload.Client
	for i := range s.clients {
		out = append(out, s.clients[i].Client)
	}
	slices.SortStableFunc(out, func(a, b workload.Client) int { return cmp.Compare(a.From, b.From) })
	return out
}

// stageRates returns the rates that reach the stages of the graph at time t, in items/s.
func (s *session) stageRates(t serving.Time) []float64 {
	out := make([]float64, len(s.graph.stages))
	for i := range s.clients {
		c := &s.clients[i]
		if t < c.From || t >= c.Until {
			continue
		}
		for k, x := range s.graph.stageRates(c.Rate, c.level(t)) {
			out[k] += x
		}
	}
	return out
}

// stageRates returns the rates that reach the stages when frames come at rate and content has the given level, in
// items/s. Edges into a join bring the same items, so the largest counts.
func (g *graph) stageRates(rate, level float64) []float64 {
	out := make([]float64, len(g.stages))
	out[0] = rate
	for k := range g.stages {
		for _, e := range g.stages[k].next {
			out[e.to] = max(out[e.to], out[k]*e.meanItems(level))
		}
	}
	return out
}

// replanChange is the relative change of a stage's rate that needs a new allocation (§3.4). So does a client that joins
// or leaves.
const replanChange = 0.25

// decision is a demand that needs an allocation, and how long that allocation is in force.
type decision struct {
	rates    []float64 // items/s by stage
	duration time.Duration
}

// decisions returns the decisions of the session, on a grid of seconds.
func (s *session) decisions() (out []decision) {
	var last []float64
	present := -1
	for t := serving.Time(0); t < serving.Time(span); t = t.Add(time.Second) {
		now, n := s.stageRates(t), 0
		for _, c := range s.clients {
			if t >= c.From && t < c.Until {
				n++
			}
		}
		changed := n != present
		for k := range now {
			changed = changed || max(now[k], last[k]) > (1+replanChange)*min(now[k], last[k])
		}
		if changed {
			last, present = now, n
			if n > 0 {
				out = append(out, decision{rates: now})
			}
		}
		if n > 0 {
			out[len(out)-1].duration += time.Second
		}
	}
	return out
}
