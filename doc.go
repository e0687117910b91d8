// Package sluice serves machine-learning models under latency objectives, for programs that embed it. It decides which
// model variants are loaded on which machines and which query runs when, in which batch, on which variant. The same
// code that decides while it serves predicts in simulation what a server would do.
//
// A configuration is the sluice.yaml that the command line reads (docs/configuration.md):
//
//	c, err := sluice.Open("sluice.yaml", sluice.Options{})
//	plan, err := c.Plan(ctx)                    // what runs where
//	report, err := plan.Simulate(load, sluice.Simulation{Seed: 1})
//	server, err := c.NewServer(ctx, sluice.ServerOptions{})
//	err = server.Serve(ctx)                     // until ctx ends
//
// Package serving/workload describes loads, serving/report what a run brought, and policy/plan a plan as data. Programs
// with machines, models or rules of their own drive packages dataplane, sim and engine instead.
//
// Errors are sentences for the person who runs the program. [KindOf] tells what that person has to do.
//
// This package keeps its promises between minor versions (docs/versions.md).
package sluice
