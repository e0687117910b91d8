package cli

import (
	"encoding/json"
	"flag"
	"fmt"
	"text/tabwriter"

	"github.com/sluice-serving/sluice/systems"
)

func systemsCommand() command {
	return command{
		name: "systems", summary: "list the systems and the parts they are made of", usage: "[explain NAME]",
		about:    "A system is a named composition of a router and a batcher; a sluice.yaml names a system, or the two parts.",
		examples: "sluice systems\nsluice systems explain proteus-batching\nsluice systems --json",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			asJSON := fs.Bool("json", false, "print JSON")
			return func(e *Env, args []string) error {
				list := systems.All()
				if len(args) == 2 && args[0] == "explain" {
					s, err := systems.Get(args[1])
					if err != nil {
						return &status{ExitUsage, err}
					}
					list = []systems.System{s}
				} else if len(args) > 0 {
					return exit(ExitUsage, "%q is not understood", args)
				}
				if *asJSON {
					out := json.NewEncoder(e.Stdout)
					out.SetIndent("", "  ")
					return out.Encode(struct {
						Systems  []systems.System
						Routers  []systems.Part
						Batchers []systems.Part
					}{list, systems.RouterParts(), systems.BatcherParts()})
				}
				if len(args) == 2 {
					s := list[0]
					fmt.Fprintf(e.Stdout, "%s: %s\nFrom: %s\n\n  router   %-15s %s\n  batcher  %-15s %s\n", s.Name, s.Doc, s.Source,
						s.Router, doc(systems.RouterParts(), s.Router), s.Batcher, doc(systems.BatcherParts(), s.Batcher))
					return nil
				}
				t := tabwriter.NewWriter(e.Stdout, 2, 8, 2, ' ', 0)
				fmt.Fprintln(t, "SYSTEM\tROUTER\tBATCHER\tWHAT IT DOES")
				for _, s := range list {
					fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", s.Name, s.Router, s.Batcher, s.Doc)
				}
				fmt.Fprintln(t, "\t\t\t\nROUTER\t\t\t")
				for _, p := range systems.RouterParts() {
					fmt.Fprintf(t, "%s\t\t\t%s\n", p.Name, p.Doc)
				}
				fmt.Fprintln(t, "\t\t\t\nBATCHER\t\t\t")
				for _, p := range systems.BatcherParts() {
					fmt.Fprintf(t, "%s\t\t\t%s\n", p.Name, p.Doc)
				}
				return t.Flush()
			}
		},
	}
}

func doc(list []systems.Part, name string) string {
	for _, p := range list {
		if p.Name == name {
			return p.Doc
		}
	}
	return ""
}
