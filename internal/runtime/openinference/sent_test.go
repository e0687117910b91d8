package openinference

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/serving"
)

// receiving is a server that takes models with their loads.
type receiving struct {
	remote
	node bool
	mu   sync.Mutex
	has  map[string]map[string]*pb.ModelRepositoryParameter // what came with each model that is loaded
	sent int                                                // files that came
}

func (r *receiving) ServerMetadata(context.Context, *pb.ServerMetadataRequest) (*pb.ServerMetadataResponse, error) {
	if r.node {
		return &pb.ServerMetadataResponse{Extensions: []string{nodeExtension}}, nil
	}
	return &pb.ServerMetadataResponse{}, nil
}

func (r *receiving) RepositoryModelLoad(_ context.Context, q *pb.RepositoryModelLoadRequest) (
	*pb.RepositoryModelLoadResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range q.Parameters {
		if strings.HasPrefix(name, "file:") {
			r.sent++
		}
	}
	r.has[q.ModelName] = q.Parameters
	return &pb.RepositoryModelLoadResponse{}, nil
}

func (r *receiving) RepositoryModelUnload(_ context.Context, q *pb.RepositoryModelUnloadRequest) (
	*pb.RepositoryModelUnloadResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.has, q.ModelName)
	return &pb.RepositoryModelUnloadResponse{}, nil
}

func (r *receiving) ModelReady(_ context.Context, q *pb.ModelReadyRequest) (*pb.ModelReadyResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &pb.ModelReadyResponse{Ready: r.has[q.Name] != nil}, nil
}

func (r *receiving) names() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(r.has)), " ")
}

// sending returns a backend that sends variant 0.
func sendingTo(t *testing.T, r *receiving, change func(*SentModel)) *Backend {
	t.Helper()
	r.has = make(map[string]map[string]*pb.ModelRepositoryParameter)
	address, _ := start(t, r)
	m := SentModel{Name: "m", Path: filepath.Join(t.TempDir(), "m.onnx"), MaxBatch: 4}
	if err := os.WriteFile(m.Path, []byte("a model"), 0o600); err != nil {
		t.Fatal(err)
	}
	change(&m)
	c := Config{Address: address, LoadModels: true, PollEvery: time.Millisecond, Sent: &Sent{}}
	c.Sent.Bind(0, m)
	b, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func launch(t *testing.T, b *Backend, cores int) dataplane.Runner {
	t.Helper()
	r, err := b.Launch(t.Context(), dataplane.InstanceSpec{
		Variants: []serving.VariantID{0}, BatchLimit: 4, Slots: 1, Cores: cores,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Every instance has a copy of its own on the server, with its threads. An instance keeps it when the model is
// forgotten here, and the next one takes the place of one that has gone.
func TestEveryInstanceHasItsCopy(t *testing.T) {
	for _, node := range []bool{false, true} {
		r := &receiving{node: node}
		b := sendingTo(t, r, func(*SentModel) {})
		one, two, other := launch(t, b, 1), launch(t, b, 1), launch(t, b, 2)
		if got, want := r.names(), "m-c1-1 m-c1-2 m-c2-1"; got != want || r.sent != 3 {
			t.Errorf("the server has %s from %d files, want %s from 3", got, r.sent, want)
		}
		var config struct {
			Name     string
			MaxBatch int                   `json:"max_batch_size"`
			Groups   []struct{ Count int } `json:"instance_group"`
			Settings map[string]struct {
				Text string `json:"string_value"`
			} `json:"parameters"`
		}
		given := r.has["m-c2-1"]
		if err := json.Unmarshal([]byte(given["config"].GetStringParam()), &config); err != nil {
			t.Fatal(err)
		}
		if config.Name != "m-c2-1" || config.MaxBatch != 4 || config.Groups[0].Count != 1 ||
			config.Settings["intra_op_thread_count"].Text != "2" {
			t.Errorf("configured as %+v", config)
		}
		if data := given["file:1/model.onnx"].GetBytesParam(); string(data) != "a model" {
			t.Errorf("the file is %q", data)
		}
		if cores := given["sluice.cores"].GetStringParam(); node != (cores == "2") {
			t.Errorf("a node: %v, is told of %q cores", node, cores)
		}
		b.c.Sent.Unbind(0)
		if err := two.Run(t.Context(), &dataplane.Batch{Items: 1,
			Portions: []dataplane.Portion{{Items: 1, Inputs: words("a")}}}); err != nil {
			t.Errorf("after the model was forgotten: %v", err)
		}
		if err := one.Unload(t.Context(), 0); err != nil {
			t.Error(err)
		}
		if got, want := r.names(), "m-c1-2 m-c2-1"; got != want {
			t.Errorf("after one has gone there are %s, want %s", got, want)
		}
		b.c.Sent.Bind(0, SentModel{Name: "m", Path: filepath.Join(t.TempDir(), "absent")})
		if _, err := b.Launch(t.Context(), dataplane.InstanceSpec{Variants: []serving.VariantID{0}, Cores: 1}); err ==
			nil || !strings.Contains(err.Error(), "absent") {
			t.Errorf("a file that is not there: %v", err)
		}
		for _, x := range []dataplane.Runner{one, two, other} {
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		}
		if r.names() != "" || len(b.copies.taken) > 0 {
			t.Errorf("at the end there are %s, and the names %v are taken", r.names(), b.copies.taken)
		}
	}
}

// What the process before has left is found again, and not sent a second time.
func TestCopiesAreFoundAgain(t *testing.T) {
	r := &receiving{node: true}
	b := sendingTo(t, r, func(*SentModel) {})
	was := launch(t, b, 1)
	b.Detach()
	if err := was.Close(); err != nil {
		t.Fatal(err)
	}
	next, err := New(b.c)
	if err != nil {
		t.Fatal(err)
	}
	is := launch(t, next, 1)
	if r.sent != 1 || r.names() != "m-c1-1" {
		t.Errorf("the server has %s from %d files, want one", r.names(), r.sent)
	}
	if err := is.Close(); err != nil || r.names() != "" {
		t.Errorf("%v, and there is %s", err, r.names())
	}
}

// A file of Python is code of ours, which other servers would not understand.
func TestPythonIsSentToNodesAlone(t *testing.T) {
	for _, node := range []bool{false, true} {
		r := &receiving{node: node}
		b := sendingTo(t, r, func(m *SentModel) { m.Python, m.Class = true, "Two" })
		x, err := b.Launch(t.Context(), dataplane.InstanceSpec{Variants: []serving.VariantID{0}, Cores: 1})
		if !node {
			if err == nil || !strings.Contains(err.Error(), "only nodes of sluice") {
				t.Errorf("another server gets a file of Python: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if class := r.has["m-c1-1"]["sluice.class"].GetStringParam(); class != "Two" {
			t.Errorf("the class is %q", class)
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
}
