package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/server"
	"github.com/sluice-serving/sluice/serving/workload"
)

// configuration has two workers that wait and give back what they are sent. In earnest there would be models.
const configuration = `
version: 1
device_types: [{name: machine, price_per_hour: 1}]
workers: [{name: machine, count: 2, backend: {kind: fake, latency: 4ms, latency_per_item: 1ms}}]
apps:
  - name: echo
    slo: {latency: 100ms}
    inputs: [{name: x, datatype: FP32, shape: [-1, 2]}]
    variants: [{name: v, max_batch: 16}]
server: {not_ready: 0s} # no load balancer has to notice that the server stops
`

// A program opens a configuration, serves it, asks it something over HTTP, and simulates what a load would lead to.
func Example() {
	if err := embed(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// answer: [3 4]
	// served in the simulator: 500 of 500
}

func embed(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "sluice")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "sluice.yaml")
	if err := os.WriteFile(file, []byte(configuration), 0o644); err != nil {
		return err
	}

	opened, err := host.Open(file, host.Options{})
	if err != nil {
		return err
	}
	profiled, err := opened.Profile() // fake workers need no profile file
	if err != nil {
		return err
	}
	planned, err := profiled.Plan(ctx)
	if err != nil {
		return err
	}

	server, err := server.NewPlanned(ctx, planned, server.Options{HTTP: "127.0.0.1:0", GRPC: "off", Admin: "off"})
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(serving) }()
	err = server.WaitReady(ctx)
	if err == nil {
		err = ask("http://" + server.HTTPAddr() + "/v2/models/echo/infer")
	}
	stop()
	if err := <-stopped; err != nil {
		return err
	}
	if err != nil {
		return err
	}

	load := workload.Spec{Seed: 1, DurationS: 10, Apps: []workload.AppSpec{{App: "echo", Rate: 50, Process: "uniform"}}}
	report, err := planned.Simulate(host.Simulation{Seed: 1}, "predicted", &load)
	if err != nil {
		return err
	}
	fmt.Println("served in the simulator:", report.Overall.Served, "of", report.Overall.Offered)
	return nil
}

// ask sends a query of the Open Inference Protocol and prints the data of the first output.
func ask(url string) error {
	var client http.Client
	defer client.CloseIdleConnections()
	query := `{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [3, 4]}]}`
	response, err := client.Post(url, "application/json", strings.NewReader(query))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var answer struct {
		Outputs []struct{ Data []float64 }
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return err
	}
	fmt.Println("answer:", answer.Outputs[0].Data)
	return nil
}
