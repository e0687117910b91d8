package cli

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/systems"
)

func systemsCommand() command {
	return command{
		name: "systems", summary: "list the systems and the components they are made of", usage: "[SYSTEM | COMPONENT]",
		about: "A system is a named composition of a planner, a router, a batcher and a scaler; a sluice.yaml " +
			"names a system, or its components. With the name of a system or a component, or ROUTER+BATCHER, a page " +
			"says what it does, where it comes from and which options it has.",
		examples: "sluice systems\nsluice systems proteus-batching\nsluice systems lsth\nsluice systems --json",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			asJSON := fs.Bool("json", false, "print JSON")
			return func(e *Env, args []string) error {
				if len(args) == 2 && args[0] == "explain" {
					args = args[1:] // 'sluice systems list' was the name of this command once
				}
				if len(args) > 1 {
					return fault.Errorf(fault.Usage, "%q is not understood: name one system or component", args)
				}
				if len(args) == 0 {
					if *asJSON {
						return printJSON(e.Stdout, allSystems())
					}
					return listSystems(e.Stdout)
				}
				pages, err := systems.Pages(args[0])
				if err != nil {
					return fault.Wrap(fault.Usage, err)
				}
				if *asJSON {
					return printJSON(e.Stdout, pages)
				}
				for at := range pages {
					if at > 0 {
						fmt.Fprintln(e.Stdout)
					}
					printPage(e.Stdout, &pages[at])
				}
				return nil
			}
		},
	}
}

func printJSON(w io.Writer, v any) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(v)
}

// registry is the list of systems and components for programs.
type registry struct {
	Systems                                          []systems.System
	Planners, Routers, Batchers, Scalers, KeepAlives []systems.Component
}

func allSystems() registry {
	return registry{
		Systems: systems.All(), Planners: systems.Components(systems.Planner),
		Routers: systems.Components(systems.Router), Batchers: systems.Components(systems.Batcher),
		Scalers: systems.Components(systems.Scaler), KeepAlives: systems.Components(systems.KeepAlive),
	}
}

func listSystems(w io.Writer) error {
	t := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	fmt.Fprintln(t, "SYSTEM\tPLANNER\tROUTER\tBATCHER\tSCALER\tWHAT IT DOES")
	for _, s := range systems.All() {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", s.Name, s.Planner, s.Router, s.Batcher, s.Scaler, s.Doc)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, k := range systems.Kinds() {
		fmt.Fprintf(w, "\n%s\n", strings.ToUpper(string(k)))
		for _, p := range systems.Components(k) {
			fmt.Fprintf(w, "  %-16s %s\n", p.Name, p.Doc)
		}
	}
	fmt.Fprint(w, "\n'sluice systems NAME' shows the options of one of them.\n")
	return nil
}

// printPage prints the page of a system or a component.
func printPage(w io.Writer, p *systems.Page) {
	fmt.Fprintf(w, "%s %s\n\n%s", strings.ToUpper(p.Kind), p.Name, wrap(fmt.Sprintf("%s %s.", p.Name, p.Doc), ""))
	if p.Source != "" {
		fmt.Fprintf(w, "From: %s\n", p.Source)
	}
	if len(p.Components) > 0 {
		fmt.Fprintln(w)
	}
	for _, x := range p.Components {
		if x.Kind != systems.Engine {
			fmt.Fprintf(w, "  %-8s %-15s %s\n", x.Kind, x.Name, x.Doc)
		}
	}
	if len(p.Systems) > 0 {
		fmt.Fprintf(w, "\nSystems with it:\n%s", wrap(strings.Join(p.Systems, ", "), "  "))
	}
	if len(p.Options) == 0 {
		fmt.Fprint(w, "\nIt has no options.\n")
		return
	}
	fmt.Fprint(w, "\nOptions, as keys below system in sluice.yaml:\n")
	for _, o := range p.Options {
		name := o.Key[strings.LastIndex(o.Key, ".")+1:]
		value := ""
		if o.Value != "" {
			value = " = " + o.Value
		}
		fmt.Fprintf(w, "\n  %s%s\n%s", o.Key, value, wrap(name+" "+o.Doc+".", "      "))
		fmt.Fprint(w, wrap(fmt.Sprintf("Takes: %s. Default: %s. Read by: %s.", o.Type, o.Default,
			strings.Join(o.ReadBy, ", ")), "      "))
	}
}

// lineWidth is the width of lines of text, in characters.
const lineWidth = 100

// wrap breaks a text into lines of lineWidth that begin with indent.
func wrap(text, indent string) string {
	var b strings.Builder
	at := 0
	for _, word := range strings.Fields(text) {
		switch {
		case at == 0:
			b.WriteString(indent)
			at = len(indent)
		case at+1+len(word) > lineWidth:
			b.WriteString("\n" + indent)
			at = len(indent)
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += len(word)
	}
	b.WriteByte('\n')
	return b.String()
}
