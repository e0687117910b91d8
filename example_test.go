package sluice_test

import (
	"context"
	"fmt"
	"log"
	"net/http"

	"github.com/sluice-serving/sluice"
	"github.com/sluice-serving/sluice/serving/workload"
)

// What would these machines do under twice the load? Nothing runs: the answer comes from measured latencies.
func Example_simulate() {
	c, err := sluice.Open("examples/fleet.yaml", sluice.Options{})
	if err != nil {
		log.Fatal(err)
	}
	plan, err := c.Plan(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	r, err := plan.Simulate(&workload.Spec{Seed: 1, DurationS: 10, Apps: []workload.AppSpec{
		{App: "images", Rate: 500},
		{App: "text", Rate: 120},
	}}, sluice.Simulation{Seed: 1, NoBound: true})
	if err != nil {
		log.Fatal(err)
	}
	for _, app := range r.Apps {
		fmt.Printf("%s: more than 99%% in time: %v, mean accuracy above 0.75: %v\n", app.Name,
			app.ViolationRatio < 0.01, *app.EffectiveAccuracy > 0.75)
	}
	// Output:
	// images: more than 99% in time: true, mean accuracy above 0.75: true
	// text: more than 99% in time: true, mean accuracy above 0.75: true
}

// A server within another program: it answers on an address of its own until the context ends.
func Example_serve() {
	c, err := sluice.Open("examples/ladder.yaml", sluice.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	server, err := c.NewServer(ctx, sluice.ServerOptions{HTTP: "127.0.0.1:0", GRPC: "off", Admin: "off"})
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- server.Serve(ctx) }()
	if err := server.WaitReady(ctx); err != nil {
		log.Fatal(err)
	}
	answer, err := http.Get("http://" + server.HTTPAddr() + "/v2/models/digits/ready")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Status)
	if err := answer.Body.Close(); err != nil {
		log.Fatal(err)
	}
	stop()
	fmt.Println(<-ended)
	// Output:
	// 200 OK
	// <nil>
}

// An error says where a file is wrong, and its kind what a person has to do.
func ExampleKindOf() {
	_, err := sluice.Open("examples/nothing.yaml", sluice.Options{})
	fmt.Println(sluice.KindOf(err) == sluice.Config)
	// Output: true
}
