package cli

import (
	"flag"
	"fmt"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
)

func replayCommand() command {
	return command{
		name: "replay", summary: "feed a recorded journal to a fresh engine and compare every decision",
		usage: "JOURNAL",
		about: `
A journal (telemetry.journal in sluice.yaml, or --journal of serve and simulate) holds all that an engine was
told and all that it decided. Replaying it on the same version gives the same decisions; on another version it
shows the first one that differs. Exit status 5 when one does. Of a journal that was cut off, what is whole is
replayed.`,
		examples: "sluice replay run.journal",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			return func(e *Env, args []string) error {
				if len(args) != 1 {
					return fault.Errorf(fault.Usage, "name one journal")
				}
				r, err := host.Replay(args[0])
				if err != nil {
					return err
				}
				if r.Difference != nil {
					return fault.Errorf(fault.Short, "%s", r.Difference)
				}
				if r.Cut != nil {
					fmt.Fprintf(e.Stderr, "%s: %v\n", args[0], r.Cut)
				}
				fmt.Fprintf(e.Stdout, "%s: %d steps, %d decisions, all the same\n", args[0], r.Steps, r.Decisions)
				return nil
			}
		},
	}
}
