package openinference

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"sync"

	"google.golang.org/grpc"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/serving"
)

// SentModel is a model whose file goes to a server with the load, so that the server need not have it.
type SentModel struct {
	// Name belongs to this content alone: a model that a server has under it is not sent again.
	Name     string
	Path     string // of an ONNX file, or of a file of Python
	Python   bool
	Class    string // in a file of Python; "" is its only one
	MaxBatch int    // items of the largest batch; 0 for a model without a batch dimension
}

// Sent has the models of variants that are sent. Backends share it. It is safe for concurrent use; the zero value is
// empty.
type Sent struct {
	mu     sync.Mutex
	models map[serving.VariantID]SentModel
}

// Bind sets the model of a variant and replaces the one set before. Instances that run keep theirs.
func (s *Sent) Bind(v serving.VariantID, m SentModel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.models == nil {
		s.models = make(map[serving.VariantID]SentModel)
	}
	s.models[v] = m
}

// Unbind forgets the model of a variant. Instances that run keep it.
func (s *Sent) Unbind(v serving.VariantID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.models, v)
}

// Has reports whether the model of a variant is sent. A nil Sent has none.
func (s *Sent) Has(v serving.VariantID) bool { return s.of(v) != nil }

func (s *Sent) of(v serving.VariantID) *SentModel {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, ok := s.models[v]; ok {
		return &m
	}
	return nil
}

// copies are the names of the copies that a server has of sent models. Every instance has a copy of its own, with its
// own threads: a server runs all requests for a name alike. Instances take the lowest number that is free, so that a
// process that takes the server over finds the copies again that the one before has left.
type copies struct {
	mu    sync.Mutex
	taken map[string]bool
}

func (c *copies) take(model string, cores int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.taken == nil {
		c.taken = make(map[string]bool)
	}
	for k := 1; ; k++ {
		if name := fmt.Sprintf("%s-c%d-%d", model, cores, k); !c.taken[name] {
			c.taken[name] = true
			return name
		}
	}
}

func (c *copies) free(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.taken, name)
}

// sending is held while a file is in memory to be sent: many instances may start at once.
var sending = make(chan struct{}, 1)

// mostSent bounds a file that is sent, in bytes: gRPC takes messages of less than 2 GiB.
const mostSent = math.MaxInt32 - 1<<20

// send has the server load a model of ours, with its file unless the server has it.
func (r *runner) send(ctx context.Context, m Model, limit int) error {
	node, err := r.isNode(ctx)
	if err != nil {
		return err
	}
	if m.sent.Python && !node {
		return errors.New("it is a file of Python, which only nodes of sluice take with a load")
	}
	ask := &pb.RepositoryModelLoadRequest{ModelName: m.Name, Parameters: map[string]*pb.ModelRepositoryParameter{}}
	if node {
		ask.Parameters = r.settings(m, limit)
	}
	ready, err := r.client.ModelReady(ctx, &pb.ModelReadyRequest{Name: m.Name})
	if err == nil && ready.GetReady() {
		if node { // which run needs it, and how much of it
			_, err = r.client.RepositoryModelLoad(r.named(ctx), ask)
		}
		return err
	}
	select {
	case sending <- struct{}{}:
		defer func() { <-sending }()
	case <-ctx.Done():
		return ctx.Err()
	}
	st, err := os.Stat(m.sent.Path)
	if err == nil && st.Size() > mostSent {
		err = fmt.Errorf("%s has %d bytes, a load takes at most %d", m.sent.Path, st.Size(), mostSent)
	}
	if err != nil {
		return err
	}
	data, err := os.ReadFile(m.sent.Path)
	if err != nil {
		return err
	}
	config, file, err := m.sent.config(m.Name, r.spec.Slots, r.spec.Cores)
	if err != nil {
		return err
	}
	ask.Parameters["config"] = stringParameter(config)
	ask.Parameters["file:1/"+file] = &pb.ModelRepositoryParameter{
		ParameterChoice: &pb.ModelRepositoryParameter_BytesParam{BytesParam: data},
	}
	_, err = r.client.RepositoryModelLoad(r.named(ctx), ask, grpc.MaxCallSendMsgSize(math.MaxInt32))
	return err
}

// config is Triton's configuration of a copy with so many runs beside each other and threads, 0 for the server's
// choice, and the name of its file.
func (m *SentModel) config(name string, slots, cores int) (text, file string, err error) {
	c := map[string]any{"name": name, "backend": "onnxruntime", "max_batch_size": m.MaxBatch}
	file = "model.onnx"
	if m.Python {
		c["backend"], file = "python", "model.py"
	}
	if slots > 0 {
		c["instance_group"] = []any{map[string]any{"count": slots}}
	}
	if cores > 0 && !m.Python {
		c["parameters"] = map[string]any{
			"intra_op_thread_count": map[string]string{"string_value": strconv.Itoa(cores)},
		}
	}
	out, err := json.Marshal(c)
	return string(out), file, err
}

// model returns the model of a variant, under the name of this instance's copy if it is sent. An instance keeps the
// model that it was launched with.
func (r *runner) model(v serving.VariantID) (Model, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m, ok := r.copies[v]; ok {
		return m, nil
	}
	m, err := r.b.model(v)
	if err != nil || m.sent == nil {
		return m, err
	}
	m.Name = r.b.copies.take(m.Name, r.spec.Cores)
	if r.copies == nil {
		r.copies = make(map[serving.VariantID]Model)
	}
	r.copies[v] = m
	return m, nil
}

// forget lets the name of a copy go that the server has no more.
func (r *runner) forget(v serving.VariantID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgetHeld(v)
}

// forgetHeld is forget where the caller holds mu.
func (r *runner) forgetHeld(v serving.VariantID) {
	if m, ok := r.copies[v]; ok {
		r.b.copies.free(m.Name)
		delete(r.copies, v)
	}
}

// isNode reports whether the server is a node of sluice.
func (r *runner) isNode(ctx context.Context) (bool, error) {
	about, err := r.client.ServerMetadata(ctx, &pb.ServerMetadataRequest{}, grpc.WaitForReady(true))
	return err == nil && slices.Contains(about.GetExtensions(), nodeExtension), err
}
