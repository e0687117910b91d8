package node_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/host/node"
	"github.com/sluice-serving/sluice/internal/runtime/openinference"
	"github.com/sluice-serving/sluice/serving"
)

// A load says where a model is that the node lacks, and what it has to be: the node need not have heard of it before.
func TestLoadSaysWhereTheModelIs(t *testing.T) {
	type asked struct{ uri, digest, name string }
	got := make(chan asked, 1)
	n, err := node.New(node.Config{
		Repository: t.TempDir(), Server: server.Config{GRPC: "127.0.0.1:0", HTTP: server.Off},
		Fetch: func(_ context.Context, uri, digest, folder string) error {
			got <- asked{uri, digest, filepath.Base(folder)}
			return errors.New("there is nothing")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	serve(t, n)
	b, err := openinference.New(openinference.Config{Address: n.GRPCAddr(), LoadModels: true,
		PollEvery: time.Millisecond, Models: map[serving.VariantID]openinference.Model{
			0: {Name: model, URI: "https://models.example.org/m", Digest: "abc"},
		}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Launch(t.Context(), dataplane.InstanceSpec{Variants: []serving.VariantID{0}, BatchLimit: 1, Slots: 1})
	if err == nil || !strings.Contains(err.Error(), "there is nothing") {
		t.Errorf("a model that cannot be fetched: %v", err)
	}
	if want := (asked{"https://models.example.org/m", "abc", model}); <-got != want {
		t.Errorf("the node fetched something else than %v", want)
	}
}
