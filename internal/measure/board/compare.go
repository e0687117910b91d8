package board

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/measure/steps"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Comparison is what could have begun instead of a batch: every variant of its stage on every kind of machine that
// served the stage. It is made afterwards, from what was recorded and what is believed of latencies, so that it is the
// same for every rule. What a rule itself compared is in the run's weighed.
type Comparison struct {
	Batch   serving.BatchID `json:"batch"`
	AtS     float64         `json:"at_s"`
	Waiting int             `json:"waiting"` // tasks at the stage that are remembered, those of the batch included
	// SpareMS is how much later the batch could have begun with its first query in time, as believed; below 0 where it
	// began too late. Nil where no time is known.
	SpareMS    *float64    `json:"spare_ms"`
	Candidates []Candidate `json:"candidates"`
}

// Candidate is a batch that was started, or that could have been.
type Candidate struct {
	Variant  string  `json:"variant"`
	Accuracy float64 `json:"accuracy"`
	Kind     string  `json:"kind"`
	Worker   string  `json:"worker,omitempty"` // the one that would have had it first
	Queries  int     `json:"queries"`
	Items    int     `json:"items"`
	// WaitMS is how long the machine was still busy, as believed.
	WaitMS float64 `json:"wait_ms"`
	// RunMS is the believed time of the batch, SpareMS what its tightest query then has left, below 0 where it is late.
	// Both are nil where the time is not known.
	RunMS   *float64 `json:"run_ms"`
	SpareMS *float64 `json:"spare_ms"`
	InTime  int      `json:"in_time"` // queries
	// Behind is how many of the other queries that wait this machine could no longer serve in time after the batch, not
	// even alone on its fastest variant; other machines may.
	Behind int `json:"behind"`
	// Worth is the sum over the queries in time of the accuracy relative to the app's best. WorthPerS divides it by the
	// time of a slot that the batch takes. CostPerMillion is the money in $ for that time and a million such queries.
	Worth          float64  `json:"worth"`
	WorthPerS      *float64 `json:"worth_per_s"`
	CostPerMillion *float64 `json:"cost_per_million"`
	Chosen         bool     `json:"chosen"`
	WhyNot         string   `json:"why_not,omitempty"`
}

// comparing is a comparison that is being made.
type comparing struct {
	spec    *serving.Spec
	of      *steps.Batch
	own     []steps.Waiting // of the batch
	waiting []steps.Waiting // of the stage, by their deadlines
	known   profile.Profile
	best    float64 // accuracy of the app
	prices  []float64
	seen    map[sized]seenTimes // instead of known
	chosen  Candidate
}

// Compare returns what could have begun instead of a batch; false when the batch is no longer known. waiting are the
// tasks of its stage when it began. Where nothing was measured, or latency is learned, the times are the means that
// batches of the same size took lately.
func (b *Board) Compare(id serving.BatchID, waiting []steps.Waiting) (*Comparison, bool) {
	b.log.Lock()
	m := &b.machines
	of := b.log.Batch(id)
	if of == nil || of.Worker == serving.None {
		b.log.Unlock()
		return nil, false
	}
	busy, places := b.slotsAt(of), m.at(of.Stage, of.Started)
	c := comparing{spec: b.spec, of: of, prices: slices.Clone(m.prices)}
	free := make([]place, 0, len(places))
	for _, i := range places {
		x := place{instance: i, worker: i.worker, device: i.device}
		if y := busy[i.id]; y.batches >= i.slots {
			x.from = y.until
		}
		if i.turns { // the worker runs one after the other
			for _, other := range m.workers[i.worker].instances {
				if y := busy[other.id]; other.turns && y.batches >= other.slots {
					x.from = max(x.from, y.until)
				}
			}
		}
		x.from = max(x.from, of.Started)
		for _, v := range b.spec.Stages[of.Stage].Variants {
			loaded, loading := i.heldAt(v, of.Started)
			x.loaded, x.loading = append(x.loaded, loaded), append(x.loading, loading)
		}
		free = append(free, x)
	}
	if c.known = b.measured; c.known == nil || b.o.Learns {
		c.known, c.seen = nil, b.seenTimes()
	}
	b.log.Unlock()
	c.best = c.spec.BestAccuracy(c.spec.Stages[of.Stage].App)
	c.waiting = slices.Clone(waiting)
	slices.SortStableFunc(c.waiting, func(a, b steps.Waiting) int { return cmp.Compare(a.Due, b.Due) })
	for _, t := range c.waiting {
		if t.In {
			c.own = append(c.own, t)
		}
	}
	return c.all(free), true
}

// place is an instance that could have been given the batch.
type place struct {
	instance *instance
	worker   serving.WorkerID
	device   serving.DeviceTypeID
	from     serving.Time // free, as believed
	loaded   []bool       // by the position of the variant in its stage
	loading  []bool
}

// all compares every variant on the best place of each kind: one that has it loaded, and of those the first to be free.
func (c *comparing) all(places []place) *Comparison {
	out := &Comparison{Batch: c.of.ID, AtS: c.of.Started.Seconds(), Waiting: len(c.waiting), Candidates: []Candidate{}}
	c.chosen = c.candidate(c.of.Variant, c.of.Device, c.of.Worker, c.of.Started, c.of.Expected, c.own)
	c.chosen.Chosen = true
	out.SpareMS = c.chosen.SpareMS
	out.Candidates = append(out.Candidates, c.chosen)
	variants := c.spec.Stages[c.of.Stage].Variants
	for d := range c.spec.DeviceTypes {
		for k, v := range variants {
			var best *place
			for p := range places {
				x := &places[p]
				if int(x.device) == d && (best == nil || c.before(x, best, k)) {
					best = x
				}
			}
			if best != nil {
				out.Candidates = append(out.Candidates, c.on(best, v, k)...)
			}
		}
	}
	slices.SortStableFunc(out.Candidates[1:], func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(b.InTime, a.InTime), cmp.Compare(b.Worth, a.Worth))
	})
	return out
}

func (c *comparing) before(a, b *place, k int) bool {
	if a.loaded[k] != b.loaded[k] {
		return a.loaded[k]
	}
	if a.loading[k] != b.loading[k] {
		return a.loading[k]
	}
	return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.instance.id, b.instance.id)) < 0
}

// on returns the batches of a variant that a place could have had: the same queries as were chosen, and as many in a
// row of those that waited as would have been in time.
func (c *comparing) on(p *place, v serving.VariantID, k int) (out []Candidate) {
	x := &c.spec.Variants[v]
	add := func(tasks []steps.Waiting, why string) {
		y := c.candidate(v, p.device, p.worker, p.from, c.latency(v, p.device, itemsOf(tasks)), tasks)
		if y.WhyNot = why; why == "" {
			y.WhyNot = c.whyNot(&y, p, k)
		}
		out = append(out, y)
	}
	items := itemsOf(c.own)
	same := v == c.of.Variant && p.device == c.of.Device
	switch why := c.unfit(x, v, c.own); {
	case same: // that is the batch itself
	case items > x.MaxBatch:
		add(c.own, fmt.Sprintf("takes at most %d items in a batch", x.MaxBatch))
	default:
		add(c.own, why)
	}
	if !p.loaded[k] {
		return out
	}
	if most := c.fullest(p, v); len(most) > 0 && len(most) != len(c.own) {
		add(most, "")
	}
	if same && len(c.own) > 1 {
		add(c.own[:1], "")
	}
	return out
}

// mostCompared bounds the tasks at which a fuller batch may begin: a long queue must not cost seconds.
const mostCompared = 512

// fullest returns the most tasks that wait and follow each other by their deadlines which a variant can have in time.
func (c *comparing) fullest(p *place, v serving.VariantID) (best []steps.Waiting) {
	x := &c.spec.Variants[v]
	for from := range min(len(c.waiting), mostCompared) {
		items := 0
		for to := from; to < len(c.waiting); to++ {
			if items += c.waiting[to].Items; items > x.MaxBatch {
				break
			}
			if c.waiting[from].Due < p.from.Add(c.latency(v, p.device, items)) {
				break
			}
			if list := c.waiting[from : to+1]; len(list) > len(best) && c.unfit(x, v, list) == "" {
				best = list
			}
		}
		if len(c.waiting)-from <= len(best) {
			break
		}
	}
	return best
}

// latency returns how long a batch is believed to take.
func (c *comparing) latency(v serving.VariantID, d serving.DeviceTypeID, items int) time.Duration {
	switch {
	case items < 1 || items > c.spec.Variants[v].MaxBatch:
		return profile.Unknown
	case c.known != nil:
		return c.known.Latency(v, d, items, 1)
	}
	if x := c.seen[sized{v, d, int32(items)}]; x.n > 0 {
		return x.took / time.Duration(x.n)
	}
	return profile.Unknown
}

// unfit says why some tasks must not run on a variant; "" where all may.
func (c *comparing) unfit(x *serving.Variant, v serving.VariantID, tasks []steps.Waiting) string {
	app := &c.spec.Apps[c.spec.Stages[c.of.Stage].App]
	if len(app.Stages) == 1 && x.Accuracy < app.Floor {
		return "below the app's accuracy_floor"
	}
	for _, t := range tasks {
		switch {
		case t.Pin != serving.None && t.Pin != v:
			return "a query asked for another variant"
		case x.Accuracy < t.MinAccuracy:
			return "below the accuracy that a query asked for"
		}
	}
	return ""
}

func itemsOf(tasks []steps.Waiting) (n int) {
	for _, t := range tasks {
		n += t.Items
	}
	return n
}

func (c *comparing) candidate(v serving.VariantID, d serving.DeviceTypeID, w serving.WorkerID, from serving.Time,
	run time.Duration, tasks []steps.Waiting) Candidate {
	x := &c.spec.Variants[v]
	out := Candidate{
		Variant: x.Name, Accuracy: x.Accuracy, Kind: c.spec.DeviceTypes[d].Name, Worker: c.spec.Workers[w].Name,
		Queries: len(tasks), Items: itemsOf(tasks), WaitMS: ms(from.Sub(c.of.Started)),
	}
	if v == c.of.Variant && len(tasks) == len(c.own) && out.Items == 0 {
		out.Items = int(c.of.Items) // its queries are forgotten
	}
	if run <= 0 || run >= profile.Unknown {
		return out
	}
	took, relative := ms(run), 1.0
	if c.best > 0 {
		relative = x.Accuracy / c.best
	}
	out.RunMS = &took
	end := from.Add(run)
	for k, t := range tasks {
		spare := ms(t.Due.Sub(end))
		if k == 0 || spare < *out.SpareMS {
			out.SpareMS = &spare
		}
		if spare >= 0 {
			out.InTime++
		}
	}
	out.Behind = c.behind(tasks, d, end)
	out.Worth = rounded(float64(out.InTime) * relative)
	if len(tasks) > 0 {
		per := rounded(out.Worth / run.Seconds())
		cost := rounded(c.prices[d] * run.Hours() / float64(len(tasks)) * 1e6)
		out.WorthPerS, out.CostPerMillion = &per, &cost
	}
	return out
}

// behind counts the waiting tasks, beside some, that a machine could not serve in time from an instant on.
func (c *comparing) behind(tasks []steps.Waiting, d serving.DeviceTypeID, from serving.Time) (n int) {
	fastest := profile.Unknown
	for _, v := range c.spec.Stages[c.of.Stage].Variants {
		fastest = min(fastest, c.latency(v, d, 1))
	}
	late := func(t steps.Waiting) bool { return fastest < profile.Unknown && t.Due < from.Add(fastest) }
	for _, t := range c.waiting {
		if late(t) {
			n++
		}
	}
	for _, t := range tasks {
		if late(t) {
			n--
		}
	}
	return n
}

// whyNot says how a candidate is worse than the batch that was chosen, or what it takes more of.
func (c *comparing) whyNot(y *Candidate, p *place, k int) string {
	points := 100 * (y.Accuracy - c.chosen.Accuracy)
	switch {
	case p.loading[k]:
		return "still loads on this kind of machine"
	case !p.loaded[k]:
		return "not loaded on this kind of machine"
	case y.RunMS == nil:
		return "its time was never measured"
	case y.InTime < min(y.Queries, c.chosen.InTime) && y.WaitMS > 0:
		return fmt.Sprintf("the machine is busy for %.3g ms more: %d of %d queries would be late", y.WaitMS,
			y.Queries-y.InTime, y.Queries)
	case y.InTime < min(y.Queries, c.chosen.InTime):
		return fmt.Sprintf("%d of %d queries would be late", y.Queries-y.InTime, y.Queries)
	case c.chosen.RunMS == nil || len(c.own) == 0:
		return ""
	}
	each, was := *y.RunMS/float64(y.Queries), *c.chosen.RunMS/float64(len(c.own))
	time := fmt.Sprintf("%.2g times the machine time per query", each/was)
	possible := "possible: "
	if y.WaitMS > 0 {
		possible = fmt.Sprintf("possible %.3g ms later: ", y.WaitMS)
	}
	switch more := y.Queries - len(c.own); {
	case points < -0.05 && each > was:
		return fmt.Sprintf("%.1f points less accurate, and %s", -points, time)
	case points < -0.05:
		return fmt.Sprintf("%.1f points less accurate, for %s", -points, time)
	case points > 0.05:
		return fmt.Sprintf("%s%.1f points more accurate, for %s", possible, points, time)
	case more != 0 && y.Behind > c.chosen.Behind:
		return fmt.Sprintf("%sa batch of %d instead of %d, but of the queries left behind %d would be too late here, "+
			"instead of %d", possible, y.Queries, len(c.own), y.Behind, c.chosen.Behind)
	case more != 0:
		return fmt.Sprintf("%sa batch of %d instead of %d, for %s", possible, y.Queries, len(c.own), time)
	}
	return possible + time
}
