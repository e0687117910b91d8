package host

import (
	"context"
	"log/slog"

	"github.com/sluice-serving/sluice/serving/pipeline"
)

// wiring tells what the stages of apps of several take and give, and by which names. Where a remote server has a
// stage's model and does not answer, that stays unknown: the stage is then handed what the file says it takes, or all
// that the stages before it give.
//
// Where every worker is fake nothing is asked for by name: they give what they get, and as much as is expected of what
// is found in it.
func (o *Opened) wiring(ctx context.Context, b *backends, log *slog.Logger) []pipeline.Wiring {
	if !o.runsModels() {
		return nil
	}
	ctx, done := context.WithTimeout(ctx, askRemote) // for all of them
	defer done()
	spec := o.Spec()
	out := make([]pipeline.Wiring, len(spec.Stages))
	for s := range out {
		st := &spec.Stages[s]
		if len(spec.Apps[st.App].Stages) == 1 {
			continue // as all are that are not of the file
		}
		out[s] = o.tables.Stages[s]
		if out[s].Inputs != nil {
			continue
		}
		t, err := b.ask(ctx, st.Variants[0])
		if err != nil {
			log.Warn("a stage is handed what the file says, or all that the stages before it give", "app",
				spec.Apps[st.App].Name, "stage", st.Name, "reason", err)
			continue
		}
		out[s].Inputs, out[s].Outputs = t.inputs, t.outputs
	}
	return out
}
