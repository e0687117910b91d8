package resources

import (
	"bytes"
	"fmt"
	"time"
)

// KServeConfig makes a sluice.yaml of InferenceServices instead: for one machine with the given number of cores. Models
// are looked for in the folder models beside it, and remarks in the file say what to copy where. The error is of kind
// fault.Config.
func KServeConfig(text []byte, how Importing, cores int) ([]byte, *List, error) {
	services, list, err := readKServe(text)
	if err != nil {
		return nil, nil, err
	}
	proposed := ""
	if how.Objective <= 0 {
		proposed = ", proposed: true"
	}
	how = how.withDefaults()
	var copies, apps bytes.Buffer
	called := names{}
	for i := range services {
		s := &services[i]
		path := "InferenceService " + s.Name
		if s.Format != "onnx" || s.URI == "" {
			list.leave(path, s.Line, "a model of format %q at %q: only ONNX models with a storageUri run here: the "+
				"service "+
				"is left out", s.Format, s.URI)
			continue
		}
		if s.Least > 1 || s.Most > 0 {
			list.leave(path, s.Line, "minReplicas and maxReplicas: instances follow the plan")
		}
		// Services of one name in two namespaces would be one app.
		name, same := called.give(s.Name)
		if !same {
			list.leave(path, s.Line, "the app of namespace %q is called %q: another has its name", s.Namespace, name)
		}
		fmt.Fprintf(&copies, "#   %q -> models/%s/1/model.onnx\n", s.URI, name)
		fmt.Fprintf(&apps, "  - name: %q\n    slo: {latency: %v%s}   # KServe has no objective: write yours\n", name,
			how.Objective.Round(time.Microsecond), proposed)
		if s.Demand > 0 {
			fmt.Fprintf(&apps, "    demand: %s   # scaleTarget, for the replicas at the start\n", quantity(s.Demand))
		}
		fmt.Fprintf(&apps, "    variants: [{name: %q", name)
		if s.MaxBatch > 0 {
			fmt.Fprintf(&apps, ", max_batch: %d", s.MaxBatch)
		}
		apps.WriteString("}]\n")
	}
	if copies.Len() == 0 {
		return nil, list.sorted(), nil
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "# Made from InferenceServices by `sluice import kserve`. docs/configuration.md explains the "+
		"settings.\nversion: 1\ndevice_types: [{name: local, cores: %d}]\nworkers: [{name: here}]\n"+
		"# Copy the models to where they are looked for:\n%smodels: {repository: models}\nsystem: sluice\napps:\n",
		max(cores, 1), copies.Bytes())
	out.Write(apps.Bytes())
	return out.Bytes(), list.sorted(), nil
}
