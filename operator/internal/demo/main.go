// Command demo shows sluice on a real Kubernetes control plane on this machine: from an empty cluster to an answered
// query in three commands, and what happens when a machine and a dispatcher go. `make cluster-demo` runs it, as root.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/sluice-serving/sluice/internal/models/digits"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
)

const (
	seed     = 7
	patience = 5 * time.Minute
	app      = "digits"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster-demo:", err)
		os.Exit(1)
	}
}

// show is one run of the demonstration.
type show struct {
	ctx   context.Context
	c     *cluster.Cluster
	began time.Time
}

// say prints a line with the time since the beginning.
func (s *show) say(format string, args ...any) {
	fmt.Printf("%6.1fs  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// kubectl shows a command, runs it and shows what it printed.
func (s *show) kubectl(input string, args ...string) error {
	s.say("$ kubectl %s", strings.Join(args, " "))
	out, err := s.c.Kubectl(s.ctx, input, args...)
	for line := range strings.Lines(out) {
		fmt.Print("         ", line)
	}
	return err
}

func run(ctx context.Context) error {
	s := &show{ctx: ctx, began: time.Now()}
	models := filepath.Join(cluster.Root(), ".cache", "cluster-demo")
	s.say("the demonstration's models: written to %s", models)
	ladder, err := digits.Trained(digits.Pictures)
	if err == nil {
		err = ladder.Write(models)
	}
	if err != nil {
		return err
	}
	s.say("a control plane: API server, etcd, scheduler, controllers; three nodes whose pods are processes")
	nodes := []cluster.Nodes{{Name: "node", Count: 3}}
	if s.c, err = cluster.Open(cluster.Options{Controllers: true, Processes: nodes, Empty: true}); err != nil {
		return err
	}
	defer s.c.Close()
	s.say("the cluster is empty: KUBECONFIG=%s", s.c.Kubeconfig)

	fmt.Println("\nFirst: install sluice.")
	kustomization := filepath.Join(cluster.Root(), "operator/deploy/kustomize")
	if err := s.kubectl("", "apply", "--server-side", "-k", kustomization); err != nil {
		return err
	}
	fmt.Println("\nSecond: say what there is and what is wanted.")
	text := resources(models, ladder)
	fmt.Println(indent(text))
	// The API server takes a moment to serve kinds that were defined just now.
	if err := s.await(func() error { return s.kubectl(text, "apply", "-f", "-") }); err != nil {
		return err
	}
	fmt.Println("\nThird: ask.")
	digit, body := picture()
	query := []string{"create", "--raw",
		"/api/v1/namespaces/default/services/default:http/proxy/v2/models/" + app + "/infer", "-f", "-"}
	s.say("$ kubectl %s   (a picture of a %d)", strings.Join(query, " "), digit)
	if err := s.await(func() error { return s.ask(query, body) }); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"get", "pods", "-o", "wide"}, {"get", "inferenceapps,machinetypes,fleets"},
		{"get", "events", "--field-selector", "reason!=Scheduled"},
	} {
		if err := s.kubectl("", args...); err != nil {
			return err
		}
	}

	fmt.Println("\nA dispatcher dies. Another takes its cell over, with its machines.")
	if err := s.kubectl("", "delete", "pod", "-l", "sluice.dev/role=dispatcher", "--force", "--wait=false",
		"--field-selector", "status.phase=Running"); err != nil {
		return err
	}
	if err := s.await(func() error { return s.ask(query, body) }); err != nil {
		return err
	}
	s.say("done")
	return nil
}

// ask sends the query through the API server's proxy and prints the answer's digit.
func (s *show) ask(query []string, body string) error {
	out, err := s.c.Kubectl(s.ctx, body, query...)
	if err != nil {
		return err
	}
	var answer struct {
		Parameters map[string]any `json:"parameters"`
		Outputs    []struct {
			Data []float64 `json:"data"`
		} `json:"outputs"`
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil || len(answer.Outputs) == 0 {
		return fmt.Errorf("the answer %q: %w", out, err)
	}
	best := 0
	for i, x := range answer.Outputs[0].Data {
		if x > answer.Outputs[0].Data[best] {
			best = i
		}
	}
	s.say("answer: it is a %d, says variant %v", best, answer.Parameters["variant"])
	return nil
}

// await tries until it works.
func (s *show) await(f func() error) error {
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(250 * time.Millisecond) {
		if err = f(); err == nil || s.ctx.Err() != nil {
			return errors.Join(err, s.ctx.Err())
		}
	}
	return fmt.Errorf("not within %v: %w", patience, err)
}

// resources are a fleet, a machine type and the app of the demonstration's models.
func resources(models string, l *digits.Ladder) string {
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: sluice.dev/v1alpha1
kind: Fleet
metadata: {name: default}
---
apiVersion: sluice.dev/v1alpha1
kind: MachineType
metadata: {name: small}
spec: {pricePerHour: "0.04", most: 3, cores: 1}
---
apiVersion: sluice.dev/v1alpha1
kind: InferenceApp
metadata: {name: %s}
spec:
  objective: {latency: 200ms, percentile: 99}
  demand: 20
  inputs: [{name: image, dataType: UINT8, shape: [-1, 1, %d, %d]}]
  outputs: [{name: logits, dataType: FP32, shape: [-1, 10]}]
  variants:
`, app, digits.Size, digits.Size)
	for _, v := range l.Variants {
		fmt.Fprintf(&b, "  - {name: %s, accuracy: \"%.4f\", maxBatch: 16, model: {uri: \"file://%s\"}}\n", v.Name,
			v.Accuracy, filepath.Join(models, v.Name))
	}
	return b.String()
}

func indent(text string) string {
	return "         " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n         ")
}

// picture draws a digit and makes a query of it.
func picture() (digit int, body string) {
	pixels, labels := digits.Set(seed+uint64(rand.IntN(1000)), 1)
	values := make([]int, len(pixels)) // bytes would be written as a text
	for i, x := range pixels {
		values[i] = int(x)
	}
	data, err := json.Marshal(values)
	if err != nil {
		panic(err) // numbers can be written
	}
	return int(labels[0]), fmt.Sprintf(`{"inputs":[{"name":"image","datatype":"UINT8","shape":[1,1,%d,%d],"data":%s}]}`,
		digits.Size, digits.Size, data)
}
