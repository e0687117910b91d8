package machines

import (
	"context"
	"log/slog"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/pipeline"
	"github.com/sluice-serving/sluice/tensor"
)

// LengthAt is what the length of an item is at a stage: that of the first variant that has one. Nil where none has.
func (f *Fleet) LengthAt(s serving.StageID) *tensor.Length {
	for _, v := range f.Tables.Spec.Stages[s].Variants {
		if l := f.Tables.Variants[v].Length; l != nil {
			return l
		}
	}
	return nil
}

// Wiring returns the inputs and outputs of the stages of apps with several stages, by name. If a remote server with a
// stage's model does not answer, they stay unknown. The stage then gets the inputs that the file names, or all outputs
// of the stages before it.
//
// If every worker is fake, no names are needed: fake workers return their inputs, and as many rows as expected.
func (b *Backends) Wiring(ctx context.Context, log *slog.Logger) []pipeline.Wiring {
	f := b.Fleet
	if !f.RunsModels() {
		return nil
	}
	ctx, done := context.WithTimeout(ctx, b.Timeout()) // one timeout for all stages
	defer done()
	spec := f.Tables.Spec
	out := make([]pipeline.Wiring, len(spec.Stages))
	for s := range out {
		st := &spec.Stages[s]
		if len(spec.Apps[st.App].Stages) == 1 {
			continue // as all are that are not of the file
		}
		out[s] = f.Tables.Stages[s]
		out[s].Length = f.LengthAt(serving.StageID(s))
		if out[s].Inputs != nil {
			continue
		}
		t, err := b.ask(ctx, st.Variants[0])
		if err != nil {
			log.Warn("a stage is handed what the file says, or all that the stages before it give", "app",
				spec.Apps[st.App].Name, "stage", st.Name, "reason", err)
			continue
		}
		out[s].Inputs, out[s].Outputs = t.Inputs, t.Outputs
	}
	return out
}
