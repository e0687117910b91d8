package dataplane

import (
	"fmt"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// stageResult is what a query has from one stage: the outputs of its parts by offset.
type stageResult struct {
	parts []stagePart
}

type stagePart struct {
	offset  int32
	outputs []tensor.Tensor
}

// inputs returns what a query brings to a stage: the request's tensors at the first, the outputs of the stages before it,
// joined, at the others; cut to the rows of the part.
func (p *Plane) inputs(c *call, s serving.StageID, part *engine.Part) ([]tensor.Tensor, error) {
	app := &p.spec().Apps[c.request.App]
	if len(app.Stages) == 1 {
		return c.request.Inputs, nil
	}
	var all []tensor.Tensor
	if s == app.Stages[0] {
		all = c.request.Inputs
	} else {
		for at, from := range app.Stages {
			for _, e := range p.spec().Stages[from].Next {
				if e.To != s {
					continue
				}
				out, err := c.stages[at].whole()
				if err != nil {
					return nil, fmt.Errorf("outputs of stage %q: %w", p.spec().Stages[from].Name, err)
				}
				all = append(all, out...)
			}
		}
	}
	cut := make([]tensor.Tensor, len(all))
	for k := range all {
		if part.Offset == 0 && len(all[k].Shape) > 0 && all[k].Shape[0] == int64(part.Items) {
			cut[k] = all[k]
			continue
		}
		rows, err := all[k].Rows(int64(part.Offset), int64(part.Offset+part.Items))
		if err != nil {
			return nil, err
		}
		cut[k] = rows
	}
	return cut, nil
}

// keep stores the outputs of part k of a finished batch with its query.
func (p *Plane) keep(c *call, j *job, k int, outputs []tensor.Tensor) error {
	app := &p.spec().Apps[c.request.App]
	if len(app.Stages) == 1 {
		c.outputs = outputs
		return nil
	}
	if c.stages == nil {
		c.stages = make([]stageResult, len(app.Stages))
	}
	for at, s := range app.Stages {
		if s != j.stage {
			continue
		}
		c.stages[at].add(j.offsets[k], outputs)
		whole, err := c.stages[at].whole()
		if err != nil {
			return err
		}
		if len(p.spec().Stages[s].Next) == 0 {
			c.merge(whole)
		}
	}
	return nil
}

// merge adds the outputs of a final stage to the answer; a later result of the same name replaces an earlier one.
func (c *call) merge(outputs []tensor.Tensor) {
	for _, o := range outputs {
		found := false
		for k := range c.outputs {
			if c.outputs[k].Name == o.Name {
				c.outputs[k], found = o, true
			}
		}
		if !found {
			c.outputs = append(c.outputs, o)
		}
	}
}

func (r *stageResult) add(offset int32, outputs []tensor.Tensor) {
	at := 0
	for at < len(r.parts) && r.parts[at].offset < offset {
		at++
	}
	if at < len(r.parts) && r.parts[at].offset == offset {
		r.parts[at].outputs = outputs
		return
	}
	r.parts = append(r.parts, stagePart{})
	copy(r.parts[at+1:], r.parts[at:])
	r.parts[at] = stagePart{offset, outputs}
}

// whole joins the parts' rows.
func (r *stageResult) whole() ([]tensor.Tensor, error) {
	if len(r.parts) == 0 {
		return nil, fmt.Errorf("the stage has not run")
	}
	if len(r.parts) == 1 {
		return r.parts[0].outputs, nil
	}
	out := make([]tensor.Tensor, len(r.parts[0].outputs))
	for k, first := range r.parts[0].outputs {
		if len(first.Shape) == 0 {
			return nil, fmt.Errorf("output %q has no rows and cannot be joined", first.Name)
		}
		o := tensor.Tensor{Name: first.Name, DType: first.DType, Shape: append([]int64(nil), first.Shape...)}
		o.Shape[0] = 0
		for _, part := range r.parts {
			if k >= len(part.outputs) || part.outputs[k].Name != o.Name || len(part.outputs[k].Shape) == 0 {
				return nil, fmt.Errorf("output %q differs between the parts of a query", first.Name)
			}
			o.Shape[0] += part.outputs[k].Shape[0]
			o.Data = append(o.Data, part.outputs[k].Data...)
		}
		out[k] = o
	}
	return out, nil
}
