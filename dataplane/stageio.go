package dataplane

import (
	"bytes"
	"errors"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// stageIO is the input and output of a batch at a stage of a graph, or at a stateful stage: the tensors of each query,
// and the states of the streams.
type stageIO struct {
	spec  *serving.Spec
	stage *serving.Stage
	graph *graph // nil for an app of one stage
	at    int    // position of the stage in the graph
	// By part.
	results []partResult // once they are checked
	states  []partState  // at a stateful stage; else nil
}

// partState is the state of a stream before a part of a batch, and whether it is kept.
type partState struct {
	key    StateKey // without a stream where the query is of none
	before []byte   // that the runner got
	begins bool     // the stream begins with the query: the runner gets no state
	ends   bool     // the stream ends with the query: no state is kept
}

// newStageIO prepares the input and output of the batch that a StartBatch decision begins. It returns nil at the
// stateless stage of an app of one.
func (p *Plane) newStageIO(d *engine.Decision) *stageIO {
	spec := p.spec()
	stage := &spec.Stages[d.Stage]
	g := p.graphs[stage.App]
	if g == nil && !stage.Stateful {
		return nil
	}
	s := &stageIO{spec: spec, stage: stage, graph: g, results: make([]partResult, len(d.Tasks))}
	if g != nil {
		s.at = g.Position(d.Stage)
	}
	if stage.Stateful {
		s.states = make([]partState, len(d.Tasks))
	}
	return s
}

// inputs returns the inputs of part k, which belongs to call c.
func (s *stageIO) inputs(k int, c *call, part *Portion) ([]tensor.Tensor, error) {
	if s.states != nil {
		s.states[k] = partState{
			key: StateKey{
				App: s.spec.Apps[s.stage.App].Name, Stage: s.stage.Name, Stream: c.request.StreamName(),
			}, begins: c.request.Begins, ends: c.request.Ends,
		}
		part.Stream, part.Begins, part.Ends = c.request.Stream, c.request.Begins, c.request.Ends
	}
	if s.graph == nil {
		return c.request.Inputs, nil
	}
	if c.execution == nil {
		c.startExecution(s.graph)
	}
	return c.execution.inputs(s.at, part.Offset, part.Items)
}

// wanted names the outputs that the answer to a call, or a later stage, needs of a batch; nil for all.
func (j *job) wanted(c *call) []string {
	if j.io != nil && j.io.graph != nil {
		return j.io.graph.wanted(j.io.at, c.request.Outputs)
	}
	return c.request.Outputs
}

// startExecution hands the tensors of a request over to an execution, which drops each of them when nothing needs it
// any more.
func (c *call) startExecution(g *graph) {
	c.execution = newExecution(g, c.request)
	bare := *c.request
	bare.Inputs = nil
	c.request = &bare
}

// loadStates gets the states that a job's parts begin with, on the goroutine of its slot.
func (p *Plane) loadStates(j *job) error {
	for k := range j.io.states {
		s := &j.io.states[k]
		if s.key.Stream == "" || s.begins {
			continue
		}
		var err error
		if s.before, err = p.states.load(s.key); err != nil {
			return err
		}
		j.batch.Portions[k].State = s.before
	}
	return nil
}

// saveState takes over the state that a part of a batch has made.
func (p *Plane) saveState(s *partState, part *Portion) {
	switch {
	case s.key.Stream == "":
	case s.ends:
		p.states.put(s.key, nil, part.Query)
	case s.begins || !bytes.Equal(s.before, part.State):
		p.states.put(s.key, part.State, part.Query)
	}
}

// endStream deletes the states of a stream whose last query has ended, also at stages that the query has not reached.
func (p *Plane) endStream(r *Request, id serving.QueryID) {
	if r.Stream == "" || r.App < 0 || int(r.App) >= len(p.spec().Apps) {
		return
	}
	app := &p.spec().Apps[r.App]
	for _, s := range app.Stages {
		if st := &p.spec().Stages[s]; st.Stateful {
			p.states.put(StateKey{App: app.Name, Stage: st.Name, Stream: r.StreamName()}, nil, id)
		}
	}
}

// checkOutputs looks at what a runner has made of a batch, before anything of it counts. Parts of queries that have
// ended meanwhile are not looked at: only the states of their streams count, for the next query of the stream.
func (p *Plane) checkOutputs(j *job) error {
	var errs []error
	s := j.io
	for k := range j.batch.Portions {
		part := &j.batch.Portions[k]
		c := p.calls[part.Query]
		var err error
		if s.states != nil && s.states[k].key.Stream != "" {
			err = p.states.accepts(s.states[k].key, part.State)
		}
		if c == nil {
			if err != nil {
				part.State = s.states[k].before
			}
			continue
		}
		if err == nil && s.graph != nil {
			var same []partResult
			for i := range k {
				if j.batch.Portions[i].Query == part.Query {
					same = append(same, s.results[i])
				}
			}
			s.results[k], err = c.execution.check(s.at, part, p.c.Rows, same)
		}
		if err != nil {
			c.cause = err
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// storeOutputs takes over what a batch has made, as far as it counts. It returns how many items each part sends along
// each edge of its stage, and of which length; nil when every edge hands the items on as they are, and where no length
// is known. The slices are valid until the end of the step.
func (p *Plane) storeOutputs(j *job, in *engine.Input) (sent, lengths []int32) {
	s := j.io
	from, before := len(p.sent), len(p.lengths)
	for k := range j.batch.Portions {
		part := &j.batch.Portions[k]
		c := p.calls[part.Query]
		if s != nil && s.states != nil {
			p.saveState(&s.states[k], part)
		}
		switch {
		case s == nil || s.graph == nil:
			switch {
			case c == nil:
			case s == nil && part.Items < c.request.Items:
				if !c.again {
					c.outputs, c.again = copied(c.outputs), true
				}
				replace(c.outputs, part)
			default:
				c.outputs = part.Outputs
			}
		case c != nil:
			final := len(s.stage.Confidences) == 0
			if final || !engine.Discards(p.c.Engine, in, part.Query, part.Offset) {
				c.execution.store(s.at, part.Offset, part.Items, s.results[k], final)
			}
			p.sent = append(p.sent, s.results[k].sent...)
			p.lengths = append(p.lengths, s.results[k].lengths...)
		default: // the query has ended: what it would send is counted for the journal and the metrics
			outputs := s.graph.named(s.at, part.Outputs)
			edges := s.graph.Next(s.at)
			for e := range edges {
				n := itemsSent(&edges[e], part.Items, outputs)
				p.sent = append(p.sent, int32(min(max(n, 0), int64(p.c.Rows))))
				if s.graph.stages[s.at].lengths != nil {
					p.lengths = append(p.lengths, 0)
				}
			}
		}
	}
	if len(p.lengths) > before {
		lengths = p.lengths[before:len(p.lengths):len(p.lengths)]
	}
	if s == nil || s.graph == nil || !s.graph.stages[s.at].counts {
		p.sent = p.sent[:from]
		return nil, lengths
	}
	return p.sent[from:len(p.sent):len(p.sent)], lengths
}
