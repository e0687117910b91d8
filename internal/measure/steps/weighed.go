package steps

import (
	"fmt"
	"io"

	"github.com/sluice-serving/sluice/policy/route"
)

// Weighed is what the rule itself compared when it chose a batch. Rules that compare no gains have none.
type Weighed struct {
	// Late is set for a batch of queries that could be in time nowhere: it took time that nothing else needed.
	Late    bool            `json:"late,omitempty"`
	Choices []WeighedChoice `json:"choices"`        // the batch itself first, then by their scores
	More    int             `json:"more,omitempty"` // that are not listed
}

// WeighedChoice is a batch that could have begun on a free machine. Gain, price and blocks are in answers of the best
// variant in time, by the weights of their apps.
type WeighedChoice struct {
	For     string  `json:"for"` // the app, or the stage of an app that has several
	Variant string  `json:"variant"`
	Kind    string  `json:"kind"`
	Queries int     `json:"queries"`
	Items   int     `json:"items"`
	RunMS   float64 `json:"run_ms"` // as believed
	// Gain is what the batch brings, less what its queries are worth if they are left, less Price for the time that it
	// takes, less Blocks.
	Gain   float64 `json:"gain"`
	Price  float64 `json:"price_per_s"` // of the machine
	Blocks float64 `json:"blocks,omitempty"`
	Score  float64 `json:"score"` // by which batches of different lengths are compared
	Why    string  `json:"why"`   // it was chosen, or not
}

// Weigh takes what a router says of its next batch. Engines call it within a step (engine.Engine.Watch), before
// Observe.
//
// What was compared is kept until an instance is given the next batch. What the rule gives together may run in several
// batches, where some of its queries ask for another variant.
func (l *Log) Weigh(w *route.Weighing) {
	l.Lock()
	defer l.Unlock()
	out := &Weighed{Late: w.Late, More: w.More, Choices: make([]WeighedChoice, len(w.Choices))}
	for k := range w.Choices {
		c := &w.Choices[k]
		stage := &l.spec.Stages[c.Stage]
		y := WeighedChoice{
			For: l.spec.Apps[stage.App].Name, Variant: l.spec.Variants[c.Variant].Name,
			Kind: l.spec.DeviceTypes[c.Device].Name, Queries: c.Queries, Items: c.Items, RunMS: c.Seconds * 1e3,
			Gain: c.Gain, Price: c.Price, Blocks: c.Blocks, Score: c.Score, Why: whyWeighed(w, k),
		}
		if len(l.spec.Apps[stage.App].Stages) > 1 {
			y.For = stage.Name
		}
		out.Choices[k] = y
	}
	l.weighed[w.Instance] = out
}

// whyWeighed says why a choice was taken, or why not.
func whyWeighed(w *route.Weighing, k int) string {
	c, best := &w.Choices[k], &w.Choices[0]
	switch {
	case w.Late:
		return "its queries could be in time nowhere, and nothing else needed the machine"
	case w.Overlaps:
		return "its queries could not wait for a free machine, and what runs there is in time beside it"
	case k == 0 && c.Gain < 0:
		return "the least loss: the machine would have idled, and its queries could not wait longer"
	case k == 0 && len(w.Choices) == 1:
		return "nothing else could begin"
	case k == 0:
		return "the highest score"
	case c.Gain < 0 && c.Gain+c.Blocks >= 0:
		return "more urgent queries would have found no machine meanwhile"
	case c.Gain < 0 && c.Gain+c.Blocks+c.Price*c.Seconds >= 0:
		return "the machine's time is worth more than it brings"
	case c.Gain < 0:
		return "its queries are worth more if they are left for later"
	case c.Gain > best.Gain:
		return "brings more, but less for the time that it takes"
	case c.Seconds < best.Seconds:
		return "takes less time, but brings less for it"
	}
	return "brings less for the time that it takes"
}

// text writes the comparison below a run of an explanation.
func (x *Weighed) text(w io.Writer) {
	if x.Late {
		_, _ = fmt.Fprintf(w, "             chosen as: %s\n", x.Choices[0].Why)
		return
	}
	_, _ = fmt.Fprintf(w, "             compared by the rule (gains and prices in best answers in time):\n")
	for k := range x.Choices {
		c := &x.Choices[k]
		_, _ = fmt.Fprintf(w, "               %s on %s, %d of %s, %.3f ms: gain %.4g, machine %.4g/s", c.Variant,
			c.Kind, c.Queries, c.For, c.RunMS, c.Gain, c.Price)
		if c.Blocks > 0 {
			_, _ = fmt.Fprintf(w, ", blocks %.4g", c.Blocks)
		}
		_, _ = fmt.Fprintf(w, ", score %.4g: %s\n", c.Score, c.Why)
	}
	if x.More > 0 {
		_, _ = fmt.Fprintf(w, "               and %d others\n", x.More)
	}
}
