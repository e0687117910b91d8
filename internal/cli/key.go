package cli

import (
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/internal/api/access"
	"github.com/sluice-serving/sluice/internal/host/fault"
)

func keyCommand() command {
	return command{
		name: "key", summary: "make an API key and the line of a key file for it",
		usage: "[--tenant NAME] [--roles ROLE,...] [--expires DURATION] NAME",
		about: `
Prints the key on standard error, once, for the caller it is for, and its line on standard output, for the file that
access.keys names. The line holds a hash: a key cannot be read from it. Servers read the file again when it changes. To
replace a key append a second line of the same name, have the caller change, and remove the first.`,
		examples: "sluice key --tenant shop till >> access.keys\n" +
			"sluice key --roles deploy,look --expires 2160h ci >> access.keys",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			tenant := fs.String("tenant", "", "`name` of its tenant; default: none")
			roles := fs.String("roles", "look,infer", "what it may do: `roles` among "+
				strings.Join(access.RoleNames, ", "))
			expires := fs.Duration("expires", 0, "`time` after which it is void; default: never")
			return func(e *Env, args []string) error {
				if len(args) != 1 || *expires < 0 {
					return fault.Errorf(fault.Usage, "say one NAME, of whom or what the key is for")
				}
				r, err := access.ParseRoles(strings.Split(*roles, ","))
				if err != nil {
					return fault.Wrap(fault.Usage, err)
				}
				var end time.Time
				if *expires > 0 {
					end = time.Now().Add(*expires)
				}
				key, line, err := access.NewKey(args[0], *tenant, r, end)
				if err != nil {
					return fault.Wrap(fault.Usage, err)
				}
				fmt.Fprintln(e.Stderr, key)
				_, err = fmt.Fprintln(e.Stdout, line)
				return err
			}
		},
	}
}
