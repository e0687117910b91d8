package config

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// write writes the file.
func (im *importer) write(b *bytes.Buffer, dir string, m machine) {
	b.WriteString(
		"# Made from a model repository. docs/pipelines.md and docs/configuration.md explain the settings;\n" +
			"# check this file with `sluice config check`.\n")
	writeNotes(b, im.notes)
	b.WriteString("version: 1\n\n")
	if im.remote {
		b.WriteString(`device_types:
  - name: triton
    cores: 1          # not known: write what the server has
workers:
  - name: triton
    backend:
      kind: openinference       # Triton goes on running the models
      address: 127.0.0.1:9001   # not known: write where it listens for gRPC; functions run in this process
`)
	} else {
		fmt.Fprintf(b, "device_types:\n  - name: local\n    cores: %d\n", max(1, m.cores))
		if m.memory > 0 {
			fmt.Fprintf(b, "    memory: %s\n", m.memory)
		}
		fmt.Fprintf(b, "workers:\n  - name: here\n    backend: {kind: onnx}\nmodels:\n  repository: %s\n", quote(dir))
		im.writeControl(b)
	}
	b.WriteString(
		"\n# Measured latencies. Write this file with `sluice profile` and take the mark away.\n# profiles: " +
			"[profile.json]\n\nsystem: sluice\n\napps:\n")
	for i := range im.apps {
		writeImported(b, &im.apps[i])
	}
	if !im.placed {
		return
	}
	b.WriteString(
		"\n# As instance_group and preferred_batch_size have it. Systems that plan by themselves need no such " +
			"list.\nplacement:\n")
	worker := "here"
	if im.remote {
		worker = "triton"
	}
	for _, p := range im.place {
		fmt.Fprintf(b, "  - {worker: %s, app: %s, stage: %s, slots: %d", worker, quote(p.App), quote(p.Stage), p.Slots)
		if p.BatchLimit > 0 {
			fmt.Fprintf(b, ", batch_limit: %d", p.BatchLimit)
		}
		b.WriteString("}\n")
	}
}

// writeControl writes how models are loaded, where the file is to say it.
func (im *importer) writeControl(b *bytes.Buffer) {
	c := &im.control
	if c.Limit > 0 {
		fmt.Fprintf(b, "  limit: %d\n", c.Limit)
	}
	if !c.Changes() {
		return
	}
	fmt.Fprintf(b, "  control: %s\n", c.Control)
	if len(c.Load) > 0 {
		fmt.Fprintf(b, "  load: %s\n", shownList(c.Load))
	}
	if c.Poll > 0 {
		fmt.Fprintf(b, "  poll: %v\n", c.Poll)
	}
}

func writeImported(b *bytes.Buffer, a *App) {
	fmt.Fprintf(b, "  - name: %s\n    slo: %s\n", quote(a.Name), proposedSLO(a.SLO.Latency))
	if a.Late != "" {
		fmt.Fprintf(b, "    late: %s   # its queue says how long queries wait\n", a.Late)
	}
	if a.QueueLimit > 0 {
		fmt.Fprintf(b, "    queue_limit: %d\n", a.QueueLimit)
	}
	writeQueue(b, a.Queue, "    ")
	if a.VersionOf != "" {
		fmt.Fprintf(b, "    version_of: %s\n", quote(a.VersionOf))
	}
	for _, l := range []struct {
		key  string
		list []Tensor
	}{{"inputs", a.Inputs}, {"outputs", a.Outputs}} {
		if len(l.list) == 0 {
			continue
		}
		fmt.Fprintf(b, "    %s:\n", l.key)
		for _, t := range l.list {
			shape := make([]string, len(t.Shape))
			for d, n := range t.Shape {
				shape[d] = strconv.FormatInt(n, 10)
			}
			fmt.Fprintf(b, "      - {name: %s, datatype: %s, shape: [%s]}\n", quote(t.Name), t.DataType,
				strings.Join(shape, ", "))
		}
	}
	for i := range a.Variants {
		fmt.Fprintf(b, "    variants:\n      - %s\n", shownVariant(&a.Variants[i]))
	}
	if a.Whole {
		b.WriteString("    whole: true   # some of its tensors have a batch dimension, and others have none\n")
	}
	if len(a.Ensembles) > 0 {
		fmt.Fprintf(b, "    ensembles: %s\n", shownList(a.Ensembles))
	}
	if len(a.Stages) > 0 {
		b.WriteString("    stages:\n")
	}
	for i := range a.Stages {
		s := &a.Stages[i]
		fmt.Fprintf(b, "      - name: %s\n", quote(s.Name))
		if s.Function != "" {
			fmt.Fprintf(b, "        function: %s\n", s.Function)
			if len(s.With) > 0 {
				fmt.Fprintf(b, "        with: %s\n", shownMap(s.With))
			}
		}
		for j := range s.Variants {
			fmt.Fprintf(b, "        variants: [%s]\n", shownVariant(&s.Variants[j]))
		}
		if len(s.Inputs) > 0 && len(a.Stages) > 1 {
			fmt.Fprintf(b, "        inputs: %s\n", shownMap(s.Inputs))
		}
		if len(s.Outputs) > 0 && len(a.Stages) > 1 {
			fmt.Fprintf(b, "        outputs: %s\n", shownMap(s.Outputs))
		}
		writeQueue(b, s.Queue, "        ")
		if len(s.Next) > 0 {
			var to []string
			for _, e := range s.Next {
				to = append(to, "{to: "+quote(e.To)+"}")
			}
			fmt.Fprintf(b, "        next: [%s]\n", strings.Join(to, ", "))
		}
	}
}

func shownVariant(v *Variant) string {
	s := "{name: " + quote(v.Name)
	if v.Model != v.Name {
		s += ", model: " + quote(v.Model)
	}
	if v.Version != "" {
		s += ", version: " + v.Version
	}
	if v.MaxBatch > 0 {
		s += fmt.Sprintf(", max_batch: %d", v.MaxBatch)
	}
	return s + "}"
}

func shownList(texts []string) string {
	quoted := make([]string, len(texts))
	for k, x := range texts {
		quoted[k] = quote(x)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func shownMap(m map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, quote(k)+": "+quote(m[k]))
	}
	return "{" + strings.Join(out, ", ") + "}"
}
