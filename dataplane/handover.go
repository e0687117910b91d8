package dataplane

import (
	"bytes"
	"errors"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// handOver is what a batch has to do with the stages before and after its own, and with the streams of its queries.
type handOver struct {
	spec  *serving.Spec
	stage *serving.Stage
	graph *graph // nil for an app of one stage
	node  int    // the stage in it
	// By part.
	results  []result // once they are checked
	memories []memory // at a stateful stage
}

// memory is what a part of a batch at a stateful stage has to do with the state of its stream.
type memory struct {
	key    StateKey // without a stream where the query is of none
	before []byte   // what the runner was handed
	begins bool     // the stream begins with the query: nothing is handed
	ends   bool     // the stream ends with it: nothing is kept
}

// handOver prepares what is handed over; nil at the stateless stage of an app of one.
func (p *Plane) handOver(d *engine.Decision) *handOver {
	spec := p.spec()
	stage := &spec.Stages[d.Stage]
	g := p.graphs[stage.App]
	if g == nil && !stage.Stateful {
		return nil
	}
	h := &handOver{spec: spec, stage: stage, graph: g, results: make([]result, len(d.Tasks))}
	if g != nil {
		h.node = g.node(d.Stage)
	}
	if stage.Stateful {
		h.memories = make([]memory, len(d.Tasks))
	}
	return h
}

// begin returns what part k, a share of call c, is handed.
func (h *handOver) begin(k int, c *call, part *Part) ([]tensor.Tensor, error) {
	if h.memories != nil {
		h.memories[k] = memory{
			key: StateKey{
				App: h.spec.Apps[h.stage.App].Name, Stage: h.stage.Name, Stream: c.request.Stream,
			}, begins: c.request.Begins, ends: c.request.Ends,
		}
	}
	if h.graph == nil {
		return c.request.Inputs, nil
	}
	if c.journey == nil {
		c.embark(h.graph)
	}
	return c.journey.inputs(h.node, part.Offset, part.Items)
}

// embark makes a call one of an app of several stages. The request's tensors are let go one by one, as nobody needs
// them any more.
func (c *call) embark(g *graph) {
	c.journey = newJourney(g, c.request)
	bare := *c.request
	bare.Inputs = nil
	c.request = &bare
}

// recall fetches the states of a job's parts, on the goroutine of its slot.
func (p *Plane) recall(j *job) error {
	for k := range j.hand.memories {
		m := &j.hand.memories[k]
		if m.key.Stream == "" || m.begins {
			continue
		}
		var err error
		if m.before, err = p.states.load(m.key); err != nil {
			return err
		}
		j.batch.Parts[k].State = m.before
	}
	return nil
}

// remember takes over the state that a part of a query has made.
func (p *Plane) remember(m *memory, part *Part) {
	switch {
	case m.key.Stream == "":
	case m.ends:
		p.states.put(m.key, nil, part.Query)
	case m.begins || !bytes.Equal(m.before, part.State):
		p.states.put(m.key, part.State, part.Query)
	}
}

// endStream forgets a stream whose last query has ended, also where the query did not get to.
func (p *Plane) endStream(r *Request, id serving.QueryID) {
	if r.Stream == "" || r.App < 0 || int(r.App) >= len(p.spec().Apps) {
		return
	}
	app := &p.spec().Apps[r.App]
	for _, s := range app.Stages {
		if st := &p.spec().Stages[s]; st.Stateful {
			p.states.put(StateKey{App: app.Name, Stage: st.Name, Stream: r.Stream}, nil, id)
		}
	}
}

// check looks at what a runner has made of a batch, before anything of it counts. Of parts of queries that have ended
// meanwhile only the state of their stream counts, for the next query of it to find.
func (p *Plane) check(j *job) error {
	var errs []error
	h := j.hand
	for k := range j.batch.Parts {
		part := &j.batch.Parts[k]
		c := p.calls[part.Query]
		var err error
		if h.memories != nil && h.memories[k].key.Stream != "" {
			err = p.states.accepts(h.memories[k].key, part.State)
		}
		if c == nil {
			if err != nil {
				part.State = h.memories[k].before
			}
			continue
		}
		if err == nil && h.graph != nil {
			var before []result
			for i := range k {
				if j.batch.Parts[i].Query == part.Query {
					before = append(before, h.results[i])
				}
			}
			h.results[k], err = c.journey.check(h.node, part, p.c.Rows, before)
		}
		if err != nil {
			c.cause = err
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// deliver hands on what a batch has made, and returns how many items each part sends along each edge of its stage; nil
// when all hand their items on as they are.
func (p *Plane) deliver(j *job) []int32 {
	h := j.hand
	from := len(p.sent)
	for k := range j.batch.Parts {
		part := &j.batch.Parts[k]
		c := p.calls[part.Query]
		if h != nil && h.memories != nil {
			p.remember(&h.memories[k], part)
		}
		switch {
		case h == nil || h.graph == nil:
			if c != nil {
				c.outputs = part.Outputs
			}
		case c != nil:
			c.journey.keep(h.node, part.Offset, part.Items, h.results[k])
			p.sent = append(p.sent, h.results[k].sent...)
		default: // nobody waits for what it sends: it is counted for the record
			n := &h.graph.nodes[h.node]
			outputs := n.given(part.Outputs)
			for e := range n.edges {
				p.sent = append(p.sent, int32(min(max(sends(n, e, part.Items, outputs), 0), int64(p.c.Rows))))
			}
		}
	}
	if h == nil || h.graph == nil || !h.graph.nodes[h.node].counts {
		p.sent = p.sent[:from]
		return nil
	}
	return p.sent[from:len(p.sent):len(p.sent)]
}
