package cli

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/sluice-serving/sluice/engine/journal"
	"github.com/sluice-serving/sluice/systems"
)

func replayCommand() command {
	return command{
		name: "replay", summary: "feed a recorded journal to a fresh engine and compare every decision",
		usage: "JOURNAL",
		about: `
A journal (telemetry.journal in sluice.yaml, or --journal of serve and simulate) holds all that an engine was
told and all that it decided. Replaying it on the same version gives the same decisions; on another version it
shows the first one that differs. Exit status 5 when one does.`,
		examples: "sluice replay run.journal",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			return func(e *Env, args []string) error {
				if len(args) != 1 {
					return exit(ExitUsage, "name one journal")
				}
				f, err := os.Open(args[0])
				if err != nil {
					return &status{ExitConfig, err}
				}
				defer f.Close()
				r, err := journal.NewReader(f)
				if err != nil {
					return &status{ExitConfig, fmt.Errorf("%s: %w", args[0], err)}
				}
				en, err := systems.Recorded(r.Header())
				if err != nil {
					return &status{ExitConfig, fmt.Errorf("%s: %w", args[0], err)}
				}
				steps, decisions := 0, 0
				d, err := journal.Replay(r, en, func(s journal.Step) error {
					steps++
					decisions += len(s.Out)
					return nil
				})
				if err == nil {
					err = en.Check()
				}
				if err != nil {
					return err
				}
				if d != nil {
					return &status{ExitShortOf, errors.New(d.String())}
				}
				fmt.Fprintf(e.Stdout, "%s: %d steps, %d decisions, all the same\n", args[0], steps, decisions)
				return nil
			}
		},
	}
}
