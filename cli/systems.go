package cli

import (
	"encoding/json"
	"flag"
	"fmt"
	"text/tabwriter"

	"github.com/sluice-serving/sluice/host/fault"
	"github.com/sluice-serving/sluice/systems"
)

func systemsCommand() command {
	return command{
		name: "systems", summary: "list the systems and the parts they are made of", usage: "[explain NAME]",
		about: "A system is a named composition of a planner, a router, a batcher and a scaler; a sluice.yaml " +
			"names a system, or its parts.",
		examples: "sluice systems\nsluice systems explain proteus-batching\nsluice systems --json",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			asJSON := fs.Bool("json", false, "print JSON")
			return func(e *Env, args []string) error {
				list := systems.All()
				if len(args) == 2 && args[0] == "explain" {
					s, err := systems.Get(args[1])
					if err != nil {
						return fault.Wrap(fault.Usage, err)
					}
					list = []systems.System{s}
				} else if len(args) > 0 {
					return fault.Errorf(fault.Usage, "%q is not understood", args)
				}
				if *asJSON {
					out := json.NewEncoder(e.Stdout)
					out.SetIndent("", "  ")
					return out.Encode(struct {
						Systems  []systems.System
						Planners []systems.Part
						Routers  []systems.Part
						Batchers []systems.Part
						Scalers  []systems.Part
					}{
						list, systems.PlannerParts(), systems.RouterParts(), systems.BatcherParts(),
						systems.ScalerParts(),
					})
				}
				if len(args) == 2 {
					s := list[0]
					fmt.Fprintf(e.Stdout, "%s: %s\nFrom: %s\n\n", s.Name, s.Doc, s.Source)
					for _, p := range []struct {
						kind, name string
						parts      []systems.Part
					}{{"planner", s.Planner, systems.PlannerParts()}, {"router", s.Router, systems.RouterParts()},
						{"batcher", s.Batcher, systems.BatcherParts()}, {"scaler", s.Scaler, systems.ScalerParts()}} {
						fmt.Fprintf(e.Stdout, "  %-8s %-15s %s\n", p.kind, p.name, doc(p.parts, p.name))
					}
					if o := s.Options.String(); o != "" {
						fmt.Fprintf(e.Stdout, "  options  %s\n", o)
					}
					return nil
				}
				t := tabwriter.NewWriter(e.Stdout, 2, 8, 2, ' ', 0)
				fmt.Fprintln(t, "SYSTEM\tPLANNER\tROUTER\tBATCHER\tSCALER\tWHAT IT DOES")
				for _, s := range list {
					fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", s.Name, s.Planner, s.Router, s.Batcher, s.Scaler, s.Doc)
				}
				if err := t.Flush(); err != nil {
					return err
				}
				for _, k := range []struct {
					kind  string
					parts []systems.Part
				}{
					{"PLANNER", systems.PlannerParts()}, {"ROUTER", systems.RouterParts()},
					{"BATCHER", systems.BatcherParts()}, {"SCALER", systems.ScalerParts()},
				} {
					fmt.Fprintf(e.Stdout, "\n%s\n", k.kind)
					for _, p := range k.parts {
						fmt.Fprintf(e.Stdout, "  %-16s %s\n", p.Name, p.Doc)
					}
				}
				return nil
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
