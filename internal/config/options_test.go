package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/systems"
)

const optionsHead = `# Options of systems

Settings of the components that systems are made of, below ` + "`system`" + ` of [sluice.yaml](configuration.md):

` + "```yaml\nsystem: {name: infless, replan: 2s, options: {keep: cheapest, cold_price: 1h}}\n```" + `

A system takes the options that its components read. Any other is an error, which names the components that would read
it. ` +
	"`sluice systems NAME`" + ` shows the options of one system or component, and the values that the system sets. The
default holds where neither the system nor the file gives a value. A number of 0 stands for the default.

This page is made from the table of package ` + "`systems`" + ` by ` + "`go test ./internal/config -update`" + `.
`

var headings = map[systems.Kind]string{
	systems.Planner: "Planners", systems.Router: "Routers", systems.Batcher: "Batchers", systems.Scaler: "Scalers",
	systems.KeepAlive: "Keep-alive rules", systems.Engine: "All systems",
}

// TestTheOptionsAreDocumented renders docs/options.md from the table of options.
func TestTheOptionsAreDocumented(t *testing.T) {
	var b strings.Builder
	b.WriteString(optionsHead)
	for _, k := range systems.Kinds() {
		fmt.Fprintf(&b, "\n## %s\n\n", headings[k])
		if k == systems.KeepAlive {
			b.WriteString("Option `keep` of the scaler `ratebands` chooses one.\n\n")
		}
		b.WriteString("| option | takes | default | read by | |\n| --- | --- | --- | --- | --- |\n")
		for _, o := range systems.Table() {
			var names, defaults []string
			for _, r := range o.Readers {
				if r.Kind == k {
					names = append(names, "`"+r.Name+"`")
				}
			}
			if names != nil && k == systems.Engine {
				names = []string{"every system"}
			}
			for at, d := range grouped(o.Readers, k) {
				if at > 0 || len(names) > len(d.names) {
					d.text += " (" + strings.Join(d.names, ", ") + ")"
				}
				defaults = append(defaults, d.text)
			}
			if names != nil {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", o.Key(), o.Type(), strings.Join(defaults, ", "),
					strings.Join(names, ", "), o.Doc)
			}
		}
	}
	golden(t, "../../docs/options.md", b.String())
}

type defaultOf struct {
	text  string
	names []string
}

// grouped are the defaults of one kind's components, each with its components.
func grouped(readers []systems.Reader, k systems.Kind) (out []*defaultOf) {
	for _, r := range readers {
		if r.Kind != k {
			continue
		}
		if n := len(out); n == 0 || out[n-1].text != r.Default {
			out = append(out, &defaultOf{text: r.Default})
		}
		last := out[len(out)-1]
		last.names = append(last.names, "`"+r.Name+"`")
	}
	return out
}

// The keys that the manual lists for a system are exactly those of the table.
func TestDirectOptionsAreKeys(t *testing.T) {
	_, paths := manual(t)
	known := make(map[string]bool)
	for _, p := range paths {
		if key, ok := strings.CutPrefix(p, "system."); ok {
			known[key] = true
		}
	}
	for _, o := range systems.Table() {
		if o.Direct != known[o.Name] && o.Name != "slack" && o.Name != "late" { // keys of their own
			t.Errorf("option %s is a key of system: %v; the file has it: %v", o.Name, o.Direct, known[o.Name])
		}
	}
}
