package python

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/tensor"
)

// run runs a batch on an idle process.
func (p *pool) run(ctx context.Context, b *dataplane.Batch) error {
	x, err := p.take(ctx)
	if err != nil {
		return err
	}
	defer p.put(x)
	timed := ctx
	if limit := p.b.c.RunTimeout; limit > 0 {
		var done context.CancelFunc
		timed, done = context.WithTimeout(ctx, limit)
		defer done()
	}
	for _, group := range x.about.groups(b) {
		err := x.runGroup(timed, &p.model, group)
		if !errors.Is(err, errTalk) {
			if err != nil {
				return err
			}
			continue
		}
		x.kill()
		switch {
		case ctx.Err() != nil: // the data plane has stopped the instance
			err = fmt.Errorf("python: model %q: %w: %w", p.model.Name, dataplane.ErrInstanceLost, ctx.Err())
			<-x.done
		case timed.Err() != nil:
			<-x.done
			err = &dataplane.RemoteError{
				What: "the model did not answer in time",
				Err: fmt.Errorf("python: model %q: a batch of %d items ran for more than %v (run_timeout): its "+
					"process is replaced", p.model.Name, b.Items, p.b.c.RunTimeout),
			}
		default:
			<-x.done
			err = &dataplane.RemoteError{
				What: "the process of the model ended",
				Err: fmt.Errorf("python: model %q: its process %s while it ran %d items", p.model.Name, x.how,
					b.Items),
			}
		}
		return err
	}
	return nil
}

// group is portions that one call of the model serves: items rows of them from row on.
type group struct {
	portions []*dataplane.Portion
	rows     int
}

// wanted names the outputs that are taken out of the process; nil for all. Queries that want different ones get all.
func (g *group) wanted() []string {
	first := g.portions[0].Wanted
	for _, p := range g.portions {
		if !slices.Equal(p.Wanted, first) {
			return nil
		}
	}
	return first
}

// groups cuts a batch into calls. Queries whose inputs differ in a dimension other than the first cannot be joined.
// A model that is called for each query, or has no batch dimension, gets them one by one, and none gets more items than
// it takes, as far as whole queries allow.
func (a *about) groups(b *dataplane.Batch) (out []group) {
	for k := range b.Portions {
		p := &b.Portions[k]
		alone := a.eachQuery || !a.batched
		at := slices.IndexFunc(out, func(g group) bool {
			return !alone && g.rows+p.Items <= a.maxBatch && joinable(g.portions[0].Inputs, p.Inputs)
		})
		if at < 0 {
			out = append(out, group{})
			at = len(out) - 1
		}
		out[at].portions = append(out[at].portions, p)
		out[at].rows += p.Items
	}
	return out
}

// joinable reports whether tensors can be joined along the first dimension.
func joinable(a, b []tensor.Tensor) bool {
	if len(a) != len(b) {
		return false
	}
	for k := range a {
		o := find(b, a[k].Name)
		if o == nil || o.DType != a[k].DType || len(o.Shape) != len(a[k].Shape) || len(o.Shape) == 0 ||
			!slices.Equal(o.Shape[1:], a[k].Shape[1:]) {
			return false
		}
	}
	return true
}

func find(list []tensor.Tensor, name string) *tensor.Tensor {
	for k := range list {
		if list[k].Name == name {
			return &list[k]
		}
	}
	return nil
}

// runGroup has the process run one call, and gives every portion its rows of the outputs.
func (x *process) runGroup(ctx context.Context, m *Model, g group) error {
	a := &x.about
	msg := ask{Op: "infer", Rows: g.rows}
	at, err := x.place(g.portions, &msg)
	if err != nil {
		return err
	}
	if first := g.portions[0]; a.streams {
		msg.Stream = &streamOf{ID: first.Stream, Begins: first.Begins, Ends: first.Ends}
		if first.State != nil {
			if err := x.memory.grow(at + len(first.State)); err != nil {
				return err
			}
			copy(x.memory.data[at:], first.State)
			msg.Stream.State = &[2]int{at, len(first.State)}
			at = aligned(at + len(first.State))
		}
	}
	outputs, state, err := x.call(ctx, m, &msg, at, g.wanted())
	if err != nil {
		return err
	}
	if a.streams {
		g.portions[0].State = state
	}
	if len(g.portions) == 1 {
		if a.batched && !a.eachQuery {
			err = rows(outputs, g.rows)
		}
		g.portions[0].Outputs = outputs
		return wrong(m, err)
	}
	return wrong(m, split(g, outputs))
}

// place copies the inputs of queries into the shared memory, joined along the first dimension, and notes where. It
// returns where they end.
func (x *process) place(portions []*dataplane.Portion, msg *ask) (int, error) {
	first, total := portions[0].Inputs, 0
	msg.Inputs = make([]placed, len(first))
	for k := range first {
		t := placed{
			Name: first[k].Name, DataType: first[k].DType.String(), Shape: slices.Clone(first[k].Shape), Offset: total,
		}
		if t.Shape == nil {
			t.Shape = []int64{}
		}
		for n, p := range portions {
			o := find(p.Inputs, t.Name)
			t.Size += len(o.Data)
			if n > 0 {
				t.Shape[0] += o.Shape[0]
			}
		}
		total = aligned(total + t.Size)
		msg.Inputs[k] = t
	}
	if err := x.memory.grow(total + x.room); err != nil {
		return 0, err
	}
	for _, t := range msg.Inputs {
		at := t.Offset
		for _, p := range portions {
			at += copy(x.memory.data[at:], find(p.Inputs, t.Name).Data)
		}
	}
	return total, nil
}

// call sends a message whose answer is tensors, with the memory from at on as room for them, and copies those that are
// wanted out; nil wants all.
func (x *process) call(ctx context.Context, m *Model, msg *ask, at int, wanted []string) (
	_ []tensor.Tensor, state []byte, err error) {
	if err := x.memory.grow(at + x.room); err != nil {
		return nil, nil, err
	}
	msg.Room = [2]int{at, len(x.memory.data) - at}
	var out answer
	if err := x.talk(ctx, msg, &out); err != nil {
		return nil, nil, err
	}
	if err := out.failure(m, "it"); err != nil {
		return nil, nil, err
	}
	if out.Need > mostRoom {
		return nil, nil, wrong(m, fmt.Errorf("its outputs have %d bytes, at most %d are taken", out.Need, mostRoom))
	}
	if out.Need > 0 {
		x.room = aligned(out.Need)
		if err := x.memory.grow(at + x.room); err != nil {
			return nil, nil, err
		}
		again := ask{Op: "outputs", Room: [2]int{at, len(x.memory.data) - at}}
		out = answer{}
		if err := x.talk(ctx, &again, &out); err != nil {
			return nil, nil, err
		}
		if err := out.failure(m, "it"); err != nil {
			return nil, nil, err
		}
	}
	outputs, err := x.tensors(&out, wanted)
	if err == nil && out.State != nil {
		part, ok := x.memory.part(out.State[0], out.State[1])
		if !ok {
			err = errors.New("the state lies outside of the shared memory")
		}
		state = append([]byte{}, part...)
	}
	if len(x.memory.data) > keptMemory {
		x.memory.release(keptMemory)
	}
	return outputs, state, wrong(m, err)
}

// tensors copies the outputs of an answer that are wanted out of the shared memory.
func (x *process) tensors(out *answer, wanted []string) ([]tensor.Tensor, error) {
	list := make([]tensor.Tensor, 0, len(out.Outputs))
	left := len(x.memory.data) // no byte of it is two outputs'
	for _, o := range out.Outputs {
		if wanted != nil && !slices.Contains(wanted, o.Name) {
			continue
		}
		if o.Size > left {
			return nil, fmt.Errorf("output %q and those before it are larger than the shared memory", o.Name)
		}
		left -= max(o.Size, 0)
		part, ok := x.memory.part(o.Offset, o.Size)
		if !ok {
			return nil, fmt.Errorf("output %q lies outside of the shared memory", o.Name)
		}
		t := tensor.Tensor{Name: o.Name, DType: tensor.ParseDType(o.DataType), Shape: o.Shape}
		t.Data = append([]byte{}, part...) // not cleared first, as by make
		if err := t.Validate(); err != nil {
			return nil, fmt.Errorf("output %q: %w", o.Name, err)
		}
		list = append(list, t)
	}
	return list, nil
}

// rows returns an error for outputs that do not have as many rows.
func rows(outputs []tensor.Tensor, want int) error {
	for k := range outputs {
		if s := outputs[k].Shape; len(s) == 0 || s[0] != int64(want) {
			return fmt.Errorf("output %q has shape %v, want %d rows, one for each item", outputs[k].Name, s, want)
		}
	}
	return nil
}

// split cuts outputs into the portions' rows, without copying.
func split(g group, outputs []tensor.Tensor) error {
	if err := rows(outputs, g.rows); err != nil {
		return err
	}
	at := int64(0)
	for _, p := range g.portions {
		p.Outputs = make([]tensor.Tensor, len(outputs))
		for k := range outputs {
			cut, err := outputs[k].Rows(at, at+int64(p.Items))
			if err != nil {
				return err
			}
			p.Outputs[k] = cut
		}
		at += int64(p.Items)
	}
	return nil
}

// wrong is the error for an answer that does not fit; nil for nil. Clients read what is wrong with it: names and shapes
// of outputs, which are no secret of the model's code.
func wrong(m *Model, err error) error {
	if err == nil || errors.Is(err, errTalk) {
		return err
	}
	if known := (*dataplane.RemoteError)(nil); errors.As(err, &known) {
		return err
	}
	return &dataplane.RemoteError{
		What: fmt.Sprintf("the Python class%s of model %q gave a wrong answer: %.300s", m.class(), m.Name, err),
		Err:  fmt.Errorf("python: model %q: %w", m.Name, err),
	}
}

// failure is the error that an answer tells of; nil for none. Clients read a text without anything that the model's
// code has written, except what it says for them.
func (a *answer) failure(m *Model, what string) error {
	e := a.Error
	if e == nil {
		return nil
	}
	switch e.Kind {
	case "refused":
		return &dataplane.RemoteError{
			What: printable([]byte(e.Text)),
			Err:  fmt.Errorf("python: model %q refused a query", m.Name),
		}
	case "answer":
		return wrong(m, errors.New(printable([]byte(e.Text))))
	case "load":
		return fmt.Errorf("python: model %q: %s", m.Name, printable([]byte(e.Text)))
	}
	known := "exception " + e.Text
	if e.Kind == "memory" {
		known = "out of memory"
	}
	failed := &dataplane.RemoteError{
		What: fmt.Sprintf("the reason is in the server's log under error %.32s", printable([]byte(e.ID))),
		Err: fmt.Errorf("python: model %q: %s failed: %.80s, error %.32s in the model's output", m.Name, what,
			printable([]byte(known)), printable([]byte(e.ID))),
	}
	if e.Kind == "memory" || e.Text == "OutOfMemoryError" { // PyTorch's, on an accelerator
		return fmt.Errorf("%w: %w", dataplane.ErrOutOfMemory, failed)
	}
	return failed
}

// samples returns what a model gives to try it with, for batches of 1, 2, 4, ... items.
func (x *process) samples(ctx context.Context, m *Model) (map[int][]tensor.Tensor, error) {
	out := make(map[int][]tensor.Tensor)
	most := x.about.maxBatch
	for n := 1; ; n = min(2*n, most) {
		list, _, err := x.call(ctx, m, &ask{Op: "sample", Rows: n}, 0, nil)
		if err != nil {
			return nil, err
		}
		if out[n] = list; n >= most {
			return out, nil
		}
	}
}
