package cli

import (
	"fmt"
	"os"
	"time"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/measure/board"
)

// writeObjectives prints a file with the proposed objectives as a running server has corrected them.
func writeObjectives(e *Env, path, server string) error {
	f, err := config.Load(path)
	if err != nil {
		return fault.Wrap(fault.Config, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fault.Wrap(fault.Config, err)
	}
	t := newTop(e, server)
	defer t.client.CloseIdleConnections()
	var seen board.Overview
	if err := t.get(e.Context, "overview", &seen); err != nil {
		return err
	}
	proposed := make(map[string]time.Duration)
	for _, x := range seen.Apps {
		if x.Proposed && !x.Closed {
			proposed[x.Name] = time.Duration(x.ObjectiveMS * float64(time.Millisecond))
		}
	}
	for i := range f.Apps {
		a := &f.Apps[i]
		switch d, ok := proposed[a.Name]; {
		case !a.SLO.Proposed:
			delete(proposed, a.Name)
		case ok && config.Duration(d) != a.SLO.Latency:
			fmt.Fprintf(e.Stderr, "app %q: %v, was %v\n", a.Name, config.Duration(d), a.SLO.Latency)
		}
	}
	out, err := f.WithObjectives(text, proposed)
	if err != nil {
		return fault.Wrap(fault.Config, err)
	}
	_, err = e.Stdout.Write(out)
	return err
}
