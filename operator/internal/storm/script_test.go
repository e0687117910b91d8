package storm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// script is what happens in a storm. A seed fixes it.
type script struct {
	seed   uint64
	events []event
	calm   time.Duration // after which all is to be well; 0 for calmAfter
}

type event struct {
	at     time.Duration
	what   string
	number int           // of what it happens to, among those that there are then
	lasts  time.Duration // of a fault
}

// stormLasts is how long things happen.
const stormLasts = 4 * time.Minute

// happenings are the kinds of events, and how often each comes relative to the others.
var happenings = []struct {
	what  string
	often int
}{
	{"kill a dispatcher", 3}, {"a dispatcher's node vanishes", 1}, {"stop a dispatcher", 2}, {"kill an operator", 2},
	{"cut all from the API server", 1}, {"cut a dispatcher from the API server", 3}, {"cut two dispatchers", 2},
	{"isolate a dispatcher", 2}, {"cut the operators from the API server", 1}, {"slow API server", 2},
	{"busy API server", 2}, {"lost answers", 3}, {"end watches", 2}, {"compact", 2}, {"deletions fail", 2},
	{"a node vanishes", 3}, {"a pod crashes", 2}, {"no nodes", 2}, {"slow starts", 2},
	{"add an app", 4}, {"delete an app", 2}, {"change an app", 3}, {"change the budget", 4}, {"change dispatchers", 3},
	{"change how many machines", 3}, {"change a template", 1},
}

// more are kinds of events that came later: they are drawn apart, so that a seed keeps the others.
var more = []string{"a worker lies", "a clock is set", "kill the picker", "change a price", "a burst"}

func newScript(seed uint64) *script {
	r := rand.New(rand.NewPCG(seed, 0))
	s := &script{seed: seed}
	total := 0
	for _, h := range happenings {
		total += h.often
	}
	for range 12 + r.IntN(24) {
		k, x := 0, r.IntN(total)
		for x >= happenings[k].often {
			x -= happenings[k].often
			k++
		}
		s.events = append(s.events, event{
			at: time.Duration(r.Int64N(int64(stormLasts))), what: happenings[k].what, number: r.IntN(1000),
			lasts: time.Duration(1+r.IntN(45)) * time.Second,
		})
	}
	r = rand.New(rand.NewPCG(seed, 3))
	for range r.IntN(8) {
		s.events = append(s.events, event{
			at: time.Duration(r.Int64N(int64(stormLasts))), what: more[r.IntN(len(more))], number: r.IntN(1000),
			lasts: time.Duration(1+r.IntN(45)) * time.Second,
		})
	}
	slices.SortStableFunc(s.events, func(a, b event) int { return int(a.at - b.at) })
	return s
}

func (s *script) String() string {
	var b strings.Builder
	for _, e := range s.events {
		fmt.Fprintf(&b, "%8.2fs %s (%d, %v)\n", e.at.Seconds(), e.what, e.number, e.lasts)
	}
	return b.String()
}
