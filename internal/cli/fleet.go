package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/resources"
)

// fleet says that functions are those of a fleet on Kubernetes, which are resources there. kubectl talks to the
// cluster: it has the context and the rights.
type fleet struct{ name, namespace string }

// fleetFlags declares the flags that name a fleet.
func fleetFlags(fs *flag.FlagSet) *fleet {
	f := &fleet{}
	fs.StringVar(&f.name, "fleet", "",
		"functions of a fleet on Kubernetes instead of a server's, with kubectl; `name` of the fleet")
	fs.StringVar(&f.namespace, "namespace", "", "`namespace` of the fleet; empty leaves it to kubectl")
	return f
}

const inferenceApp = "inferenceapps.sluice.dev"

// kubectl runs it and returns what it printed.
func (f *fleet) kubectl(ctx context.Context, input []byte, args ...string) ([]byte, error) {
	if f.namespace != "" {
		args = append(args, "--namespace", f.namespace)
	}
	c := exec.CommandContext(ctx, "kubectl", args...)
	c.Stdin = bytes.NewReader(input)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	switch failed := (*exec.ExitError)(nil); {
	case err == nil:
		return out.Bytes(), nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, exec.ErrNotFound):
		return nil, fault.Errorf(fault.Config, "--fleet needs kubectl in PATH, which talks to the cluster: %v", err)
	case errors.As(err, &failed):
		return nil, fmt.Errorf("kubectl %s: %s", strings.Join(args, " "), strings.TrimSpace(errs.String()))
	default:
		return nil, fmt.Errorf("kubectl: %w", err)
	}
}

// onFleet is an InferenceApp as far as the commands show it.
type onFleet struct {
	Metadata struct {
		Name       string `json:"name"`
		Generation int64  `json:"generation"`
	} `json:"metadata"`
	Spec struct {
		Fleet     string `json:"fleet"`
		Objective struct {
			Latency    string `json:"latency"`
			Percentile any    `json:"percentile"` // a quantity: a text or a number
		} `json:"objective"`
		Variants []struct {
			Model struct {
				SHA256 string `json:"sha256"`
			} `json:"model"`
		} `json:"variants"`
	} `json:"spec"`
	Status struct {
		Conditions []struct {
			Type               string `json:"type"`
			Status             string `json:"status"`
			Message            string `json:"message"`
			ObservedGeneration int64  `json:"observedGeneration"`
		} `json:"conditions"`
		Rate       string `json:"rate"`
		Violations string `json:"violations"`
		Machines   int    `json:"machines"`
		Instances  int    `json:"instances"`
		Lacks      string `json:"lacks"`
	} `json:"status"`
}

// condition returns the status and the message of a condition of the present generation.
func (x *onFleet) condition(kind string) (status, message string) {
	for _, c := range x.Status.Conditions {
		if c.Type == kind && c.ObservedGeneration >= x.Metadata.Generation {
			return c.Status, c.Message
		}
	}
	return "", ""
}

// state is how a function stands: refused, planning, idle (no machine has it), or ready.
func (x *onFleet) state() string {
	switch accepted, _ := x.condition("Accepted"); {
	case accepted == "False":
		return "refused"
	case accepted == "":
		return "planning"
	case x.Status.Instances == 0:
		return "idle"
	}
	return "ready"
}

// deploy makes a resource of a function and waits until the fleet has taken it.
func (f *fleet) deploy(e *Env, fn *config.Function, uri string, wait time.Duration, asJSON bool) error {
	if uri == "" {
		return fault.Errorf(fault.Usage, "a fleet takes models from a place that its machines reach: name that of the "+
			"file with --uri, such as pvc://models/%s.onnx", fn.Name)
	}
	list, err := resources.Function(fn, f.name, f.namespace, uri)
	if err != nil {
		return err
	}
	for _, n := range list.Notes {
		fmt.Fprintf(e.Stderr, "note: %s\n", n)
	}
	var text bytes.Buffer
	if err := list.Write(&text, ""); err != nil {
		return err
	}
	if _, err := f.kubectl(e.Context, text.Bytes(), "apply", "-f", "-"); err != nil {
		return err
	}
	x, err := f.get(e.Context, fn.Name)
	for end := time.Now().Add(wait); err == nil && x.state() == "planning" && time.Now().Before(end); {
		select {
		case <-e.Context.Done():
			return e.Context.Err()
		case <-time.After(500 * time.Millisecond):
		}
		x, err = f.get(e.Context, fn.Name)
	}
	if err != nil {
		return err
	}
	if asJSON {
		err = writeJSON(e.Stdout, x)
	} else {
		fmt.Fprintf(e.Stdout, "%s: version %d is %s\n", fn.Name, x.Metadata.Generation, x.state())
	}
	switch state := x.state(); {
	case err != nil:
		return err
	case state == "refused":
		_, why := x.condition("Accepted")
		return fmt.Errorf("the fleet refuses it: %s", why)
	case state == "planning" && wait > 0:
		return fault.Errorf(fault.Short, "no operator has taken it up after %v: see 'kubectl describe inferenceapp %s'",
			wait, fn.Name)
	}
	return nil
}

func (f *fleet) get(ctx context.Context, name string) (x onFleet, err error) {
	out, err := f.kubectl(ctx, nil, "get", inferenceApp, name, "-o", "json")
	if err == nil {
		err = json.Unmarshal(out, &x)
	}
	return x, err
}

// list shows the functions of the fleet.
func (f *fleet) list(e *Env, asJSON bool) error {
	out, err := f.kubectl(e.Context, nil, "get", inferenceApp, "-l", resources.LabelFunction, "-o", "json")
	if err != nil {
		return err
	}
	var all struct {
		Items []onFleet `json:"items"`
	}
	if err := json.Unmarshal(out, &all); err != nil {
		return fmt.Errorf("kubectl: %w", err)
	}
	all.Items = slices.DeleteFunc(all.Items, func(x onFleet) bool { return x.Spec.Fleet != f.name })
	if asJSON {
		return writeJSON(e.Stdout, append([]onFleet{}, all.Items...))
	}
	if len(all.Items) == 0 {
		fmt.Fprintf(e.Stdout, "no function is deployed to fleet %s: see 'sluice help deploy'\n", f.name)
		return nil
	}
	rows := [][]string{
		{"FUNCTION", "VERSION", "STATE", "READY", "MACHINES", "SLO", "QUERIES/S", "LATE", "MODEL", "LACKS"},
	}
	for i := range all.Items {
		x := &all.Items[i]
		sum := ""
		if len(x.Spec.Variants) > 0 {
			sum = fmt.Sprintf("%.12s", x.Spec.Variants[0].Model.SHA256)
		}
		rows = append(rows, []string{
			x.Metadata.Name, strconv.FormatInt(x.Metadata.Generation, 10), x.state(), strconv.Itoa(x.Status.Instances),
			strconv.Itoa(x.Status.Machines),
			fmt.Sprintf("p%v %s", x.Spec.Objective.Percentile, x.Spec.Objective.Latency), x.Status.Rate,
			x.Status.Violations, sum, x.Status.Lacks,
		})
	}
	return columns(e.Stdout, "lrlrrlrrll", rows)
}

// logs shows the events of a function.
func (f *fleet) logs(e *Env, name string, most int, asJSON bool) error {
	args := []string{
		"get", "events", "--sort-by=.lastTimestamp", "--field-selector",
		"involvedObject.kind=InferenceApp,involvedObject.name=" + name, "-o", "json",
	}
	out, err := f.kubectl(e.Context, nil, args...)
	if err != nil {
		return err
	}
	type event struct {
		At      time.Time `json:"lastTimestamp"`
		Reason  string    `json:"reason"`
		Message string    `json:"message"`
		Count   int       `json:"count"`
	}
	var all struct {
		Items []event `json:"items"`
	}
	if err := json.Unmarshal(out, &all); err != nil {
		return fmt.Errorf("kubectl: %w", err)
	}
	for _, x := range all.Items[max(0, len(all.Items)-most):] {
		if asJSON {
			err = writeLine(e.Stdout, &x)
		} else {
			times := ""
			if x.Count > 1 {
				times = fmt.Sprintf(" (%d times)", x.Count)
			}
			_, err = fmt.Fprintf(e.Stdout, "%s  %-18s  %s%s\n", x.At.Local().Format(time.DateTime), x.Reason, x.Message,
				times)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// remove deletes a function. One that is not there is an error, unless missing.
func (f *fleet) remove(e *Env, name string, missing bool) error {
	_, err := f.kubectl(e.Context, nil, "delete", inferenceApp, name, fmt.Sprintf("--ignore-not-found=%v", missing))
	if err == nil {
		fmt.Fprintf(e.Stdout, "%s: deleted\n", name)
	}
	return err
}
