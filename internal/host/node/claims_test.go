package node_test

import (
	"context"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/host/node"
	"github.com/sluice-serving/sluice/internal/runtime/fake"
	"github.com/sluice-serving/sluice/internal/runtime/openinference"
	"github.com/sluice-serving/sluice/serving"
)

const model = "m"

// start runs a node that answers for any model.
func start(t *testing.T) *node.Node {
	t.Helper()
	stub, err := fake.New(fake.Config{Latency: func(serving.VariantID, int) time.Duration { return time.Millisecond }})
	if err != nil {
		t.Fatal(err)
	}
	n, err := node.New(node.Config{Fake: stub, Server: server.Config{GRPC: "127.0.0.1:0", HTTP: server.Off}})
	if err != nil {
		t.Fatal(err)
	}
	serve(t, n)
	return n
}

// serve has a node answer until the test is over.
func serve(t *testing.T, n *node.Node) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// run is a dispatcher's run that has loaded the model.
func run(t *testing.T, n *node.Node) (*openinference.Backend, dataplane.Runner) {
	t.Helper()
	b, err := openinference.New(openinference.Config{Address: n.GRPCAddr(), LoadModels: true,
		Models: map[serving.VariantID]openinference.Model{0: {Name: model}}, PollEvery: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.Launch(t.Context(), dataplane.InstanceSpec{Variants: []serving.VariantID{0}, BatchLimit: 1, Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() }) // a second time, mostly
	return b, r
}

func loaded(n *node.Node) bool {
	_, ok := n.Lookup(model)
	return ok
}

// A run that ends beside its successor must not take away what that has loaded, whichever of the two came first, and
// whether it drops the model or ends.
func TestNoRunUnloadsWhatAnotherNeeds(t *testing.T) {
	drop := func(t *testing.T, r dataplane.Runner) {
		if err := r.Unload(t.Context(), 0); err != nil {
			t.Error(err)
		}
	}
	end := func(t *testing.T, r dataplane.Runner) {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	for name, leave := range map[string]func(*testing.T, dataplane.Runner){"drops": drop, "ends": end} {
		for _, first := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				n := start(t)
				_, a := run(t, n)
				_, b := run(t, n)
				if !first {
					a, b = b, a
				}
				leave(t, a)
				if !loaded(n) {
					t.Fatal("a run that goes has taken the model from another")
				}
				leave(t, b)
				if loaded(n) {
					t.Error("the last run that needs the model does not unload it")
				}
			})
		}
	}
}

// What a run needs that has died is nothing: its successor can unload the models.
func TestDeadRunsNeedNothing(t *testing.T) {
	n := start(t)
	old, r := run(t, n)
	old.Detach() // as one that was killed, it unloads nothing
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if !loaded(n) {
		t.Fatal("a run that was detached has unloaded its model")
	}
	for deadline := time.Now().Add(time.Minute); loaded(n); {
		_, next := run(t, n) // until the node has seen the end of the connection before
		if err := next.Close(); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatal("the successor of a dead run cannot unload the model")
		}
	}
}
