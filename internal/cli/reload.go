package cli

import (
	"flag"
	"fmt"

	"github.com/sluice-serving/sluice/internal/host/fault"
)

func reloadCommand() command {
	return command{
		name: "reload", summary: "have a running server take up the apps of its changed sluice.yaml", usage: "[--json]",
		about: `
The server reads its sluice.yaml anew. Apps that are new there are measured, planned and served; changed ones, with
other variants, objectives or stages, take the place of what they were once they are ready; and those that are gone
end. Queries are answered all the time, and an app that cannot be served stays as it was. Everything else in the
file takes a restart: where it differs nothing changes. It is for servers whose models run in their process, from a
repository. Exit status: 0 all apps are as the file says, 1 the server refused, or some app stays as it was, 3 the
file is wrong, 6 the server did not answer.`,
		examples: "sluice reload\nsluice reload --config /srv/sluice.yaml --json",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			asJSON := fs.Bool("json", false, "print what changed as JSON")
			client := clientFlags(fs)
			return func(e *Env, args []string) error {
				if len(args) > 0 {
					return fault.Errorf(fault.Usage, "%q is not understood", args)
				}
				c, err := client(e)
				if err != nil {
					return err
				}
				out, err := c.Reload(e.Context)
				if err != nil {
					return classified(err)
				}
				failed := 0
				for _, x := range out.Apps {
					if x.Error != "" {
						failed++
					}
					if !*asJSON && x.Error == "" {
						fmt.Fprintf(e.Stdout, "%s: %s\n", x.App, x.Change)
					} else if !*asJSON {
						fmt.Fprintf(e.Stdout, "%s: not %s: %s\n", x.App, x.Change, x.Error)
					}
				}
				switch {
				case *asJSON:
					err = writeJSON(e.Stdout, out)
				case len(out.Apps) == 0:
					fmt.Fprintln(e.Stdout, "no app has changed")
				}
				if err == nil && failed > 0 {
					err = fmt.Errorf("%d of %d apps stay as they were", failed, len(out.Apps))
				}
				return err
			}
		},
	}
}
