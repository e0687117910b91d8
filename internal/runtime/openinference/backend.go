// Package openinference runs batches on servers that speak the Open Inference Protocol v2 over gRPC (Triton, OVMS,
// KServe, MLServer, another sluice), so that sluice can be used in front of existing servers.
package openinference

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// Model is the name and version of a variant on the server.
type Model struct {
	Name    string
	Version string // "" leaves the choice to the server
	// URI says where a node of sluice gets the model from if its repository lacks it, and Digest what it has to be; ""
	// for nothing.
	URI, Digest string
	// Whole says that a batch is one query of one item, whose tensors have any number of rows.
	Whole bool
	// Batched says that queries may share a batch: every output then has a row for every item, also where one query is
	// alone.
	Batched bool
	// Outputs are what it gives, for a server of the protocol v1 that does not say; nil where it says.
	Outputs []tensor.Spec
	sent    *SentModel // nil for a model that the server has
}

// Config is the address of a server and the models that it serves.
type Config struct {
	Address string // HOST:PORT
	// Dial connects to it; nil for the machine's network.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// V1 speaks the REST protocol of TensorFlow Serving and KServe, in which LoadModels is not there.
	V1  bool
	TLS bool
	CA  string // PEM file to trust instead of the system's, with TLS
	// LoadModels asks the server to load and unload models; otherwise they must be loaded already.
	LoadModels bool
	Models     map[serving.VariantID]Model
	// Sent has the models of variants that are sent to the server, beside Models and before them; nil for none. It
	// needs LoadModels.
	Sent *Sent
	// CallTimeout bounds one inference (default 60 s), PollEvery is the time between two checks whether a model is
	// ready (default 100 ms), MaxMessage the largest answer in bytes (default 64 MiB).
	CallTimeout, PollEvery time.Duration
	MaxMessage             int
	// Trouble is called with what is for the log, such as a server that is waited for; nil for none.
	Trouble func(error)
}

// Backend is a dataplane.Backend. Each instance has its own connection, so that a lost connection fails one instance
// only.
type Backend struct {
	c           Config
	credentials credentials.TransportCredentials
	trust       *tls.Config // nil for the system's, or none
	users       users
	copies      copies
	detached    atomic.Bool
	owner       string // names this backend to nodes of sluice
}

// Detach has runners that are closed from now on leave the server's models loaded, for another process that takes the
// server over, or because the server is gone.
func (b *Backend) Detach() { b.detached.Store(true) }

// New checks the configuration; it does not connect.
func New(c Config) (*Backend, error) {
	if c.Address == "" {
		return nil, errors.New("openinference: address is missing, want HOST:PORT")
	}
	if c.CallTimeout <= 0 {
		c.CallTimeout = time.Minute
	}
	if c.PollEvery <= 0 {
		c.PollEvery = 100 * time.Millisecond
	}
	if c.MaxMessage <= 0 {
		c.MaxMessage = 64 << 20
	}
	if c.Trouble == nil {
		c.Trouble = func(error) {}
	}
	b := &Backend{c: c, credentials: insecure.NewCredentials(), owner: rand.Text()}
	if c.TLS {
		t := &tls.Config{MinVersion: tls.VersionTLS12}
		if c.CA != "" {
			pem, err := os.ReadFile(c.CA)
			if err != nil {
				return nil, fmt.Errorf("openinference: ca: %w", err)
			}
			t.RootCAs = x509.NewCertPool()
			if !t.RootCAs.AppendCertsFromPEM(pem) {
				return nil, fmt.Errorf("openinference: ca: %s holds no certificate", c.CA)
			}
		}
		b.credentials, b.trust = credentials.NewTLS(t), t
	}
	return b, nil
}

func (b *Backend) dial() (io.Closer, pb.GRPCInferenceServiceClient, error) {
	if b.c.V1 {
		x := newV1Client(&b.c, b.trust)
		return x, x, nil
	}
	dialer := grpc.DialOption(grpc.EmptyDialOption{})
	if b.c.Dial != nil {
		dialer = grpc.WithContextDialer(b.c.Dial)
	}
	conn, err := grpc.NewClient("passthrough:///"+b.c.Address, grpc.WithTransportCredentials(b.credentials), dialer,
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(b.c.MaxMessage), grpc.MaxCallSendMsgSize(b.c.MaxMessage),
			grpc.ForceCodecV2(newBoundedCodec())),
		grpc.WithIdleTimeout(0), // a node keeps what was loaded for this run as long as the connection stands
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second,
			}, MinConnectTimeout: 2 * time.Second,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}))
	if err != nil {
		return nil, nil, fmt.Errorf("openinference: %s: %w", b.c.Address, err)
	}
	return conn, pb.NewGRPCInferenceServiceClient(conn), nil
}

func (b *Backend) model(v serving.VariantID) (Model, error) {
	if s := b.c.Sent.of(v); s != nil {
		return Model{Name: s.Name, Batched: s.MaxBatch > 1, sent: s}, nil
	}
	m, ok := b.c.Models[v]
	if !ok || m.Name == "" {
		return m, fmt.Errorf("openinference: variant %d has no model on %s", v, b.c.Address)
	}
	return m, nil
}

// Interface asks the server for the inputs and outputs of a variant.
func (b *Backend) Interface(ctx context.Context, v serving.VariantID) (inputs, outputs []tensor.Spec, err error) {
	m, err := b.model(v)
	if err != nil {
		return nil, nil, err
	}
	conn, client, err := b.dial()
	if err != nil {
		return nil, nil, err
	}
	defer conn.Close()
	r, err := client.ModelMetadata(ctx, &pb.ModelMetadataRequest{Name: m.Name, Version: m.Version},
		grpc.WaitForReady(true))
	if err != nil {
		return nil, nil, fmt.Errorf("openinference: metadata of %q on %s: %w", m.Name, b.c.Address, err)
	}
	return specs(r.GetInputs()), specs(r.GetOutputs()), nil
}

// Launch implements dataplane.Backend: it connects and waits until every variant is ready on the server.
func (b *Backend) Launch(ctx context.Context, s dataplane.InstanceSpec) (dataplane.Runner, error) {
	conn, client, err := b.dial()
	if err != nil {
		return nil, err
	}
	r := &runner{b: b, conn: conn, client: client, spec: s}
	for _, v := range s.Variants {
		if err := r.Load(ctx, v, s.BatchLimit); err != nil {
			for m := range r.held {
				b.users.add(m, -1)
			}
			for _, v := range s.Variants {
				r.forget(v)
			}
			_ = conn.Close()
			return nil, err
		}
	}
	return r, nil
}

type runner struct {
	b      *Backend
	conn   io.Closer
	client pb.GRPCInferenceServiceClient
	spec   dataplane.InstanceSpec

	mu      sync.Mutex
	held    map[string]bool                   // models this instance has loaded
	copies  map[serving.VariantID]Model       // of models that were sent, with their names on the server
	answers map[serving.VariantID]description // by variant, as the server describes them
}

// hold notes that an instance needs a model.
func (r *runner) hold(model string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held[model] {
		return
	}
	if r.held == nil {
		r.held = make(map[string]bool)
	}
	r.held[model] = true
	r.b.users.add(model, 1)
}

// named has a call say which run makes it: a node of sluice unloads no model that another run needs.
func (r *runner) named(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, oip.OwnerHeader, r.b.owner)
}

// release notes that an instance does not need a model any more, and reports whether it was the last that did.
func (r *runner) release(model string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.held[model] {
		return false
	}
	delete(r.held, model)
	return r.b.users.add(model, -1) == 0
}

// users counts the instances that need each model of the server. The server has one copy for all of them, which is
// unloaded with the last.
type users struct {
	mu sync.Mutex
	n  map[string]int
}

func (u *users) add(model string, by int) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.n == nil {
		u.n = make(map[string]int)
	}
	u.n[model] += by
	return u.n[model]
}

// Load implements dataplane.Runner.
func (r *runner) Load(ctx context.Context, v serving.VariantID, limit int) error {
	m, err := r.model(v)
	if err != nil {
		return err
	}
	if r.b.c.LoadModels {
		r.hold(m.Name)
		if err := r.ask(ctx, m, limit); err != nil {
			return fmt.Errorf("openinference: load of %q on %s: %w", m.Name, r.b.c.Address, err)
		}
	}
	return r.await(ctx, v, m)
}

// ask has the server load a model. It is asked even if another instance has asked before: a server that has loaded the
// model just confirms it.
func (r *runner) ask(ctx context.Context, m Model, limit int) error {
	if m.sent != nil {
		return r.send(ctx, m, limit)
	}
	ask := &pb.RepositoryModelLoadRequest{ModelName: m.Name}
	if node, err := r.isNode(ctx); err == nil && node {
		ask.Parameters = r.settings(m, limit)
	}
	_, err := r.client.RepositoryModelLoad(r.named(ctx), ask, grpc.WaitForReady(true))
	return err
}

// await returns when a model is ready on the server.
func (r *runner) await(ctx context.Context, v serving.VariantID, m Model) error {
	tick := time.NewTicker(r.b.c.PollEvery)
	defer tick.Stop()
	for waiting := 0; ; {
		ready, err := r.client.ModelReady(ctx, &pb.ModelReadyRequest{Name: m.Name, Version: m.Version})
		if err == nil && ready.GetReady() {
			r.learnAnswers(ctx, v, m)
			return nil
		}
		if waiting++; waiting == 1 || waiting%int(max(waitingLog/r.b.c.PollEvery, 1)) == 0 {
			r.b.c.Trouble(fmt.Errorf("openinference: waiting for model %q on %s: %w", m.Name, r.b.c.Address,
				cmp.Or(err, errNotReady)))
		}
		if err != nil && status.Code(err) != codes.Unavailable && ctx.Err() == nil {
			return fmt.Errorf("openinference: is %q ready on %s: %w", m.Name, r.b.c.Address, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("openinference: %q on %s: %w", m.Name, r.b.c.Address,
				errors.Join(cmp.Or(err, errNotReady), ctx.Err()))
		case <-tick.C:
		}
	}
}

// waitingLog is the time between two reports that a server is waited for.
const waitingLog = 30 * time.Second

var errNotReady = errors.New("the model is not ready")

// Unload implements dataplane.Runner.
func (r *runner) Unload(ctx context.Context, v serving.VariantID) error {
	m, err := r.model(v)
	if err != nil {
		return err
	}
	defer r.forget(v)
	if !r.b.c.LoadModels || !r.release(m.Name) || r.b.detached.Load() {
		return nil
	}
	_, err = r.client.RepositoryModelUnload(r.named(ctx), &pb.RepositoryModelUnloadRequest{ModelName: m.Name})
	return err
}

// Close implements dataplane.Runner. Models that no other instance needs are unloaded, unless the server is lost or
// detached.
func (r *runner) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, done := context.WithTimeout(context.Background(), r.b.c.CallTimeout)
	defer done()
	var failed []error
	for _, m := range slices.Sorted(maps.Keys(r.held)) {
		if r.b.users.add(m, -1) > 0 || r.b.detached.Load() {
			continue
		}
		_, err := r.client.RepositoryModelUnload(r.named(ctx), &pb.RepositoryModelUnloadRequest{ModelName: m})
		if err != nil && status.Code(err) != codes.Unavailable {
			failed = append(failed, fmt.Errorf("openinference: unload of %q on %s: %w", m, r.b.c.Address, err))
		}
	}
	r.held = nil
	for v := range r.copies {
		r.forgetHeld(v)
	}
	return errors.Join(append(failed, r.conn.Close())...)
}

// Run implements dataplane.Runner.
func (r *runner) Run(ctx context.Context, b *dataplane.Batch) error {
	m, err := r.model(b.Variant)
	if err != nil {
		return err
	}
	ctx, done := context.WithTimeout(ctx, r.b.c.CallTimeout)
	defer done()
	d := r.describedAnswer(b.Variant)
	if d.decoupled {
		return r.runDecoupled(ctx, b, m)
	}
	inputs, err := join(b.Portions)
	if err != nil {
		return err
	}
	request := oip.EncodeRequest(m.Name, m.Version, "", inputs, nil)
	d = d.ask(request, b.Wanted())
	answer, err := r.client.ModelInfer(ctx, request)
	if err != nil {
		return r.failure(err)
	}
	outputs, err := oip.DecodeOutputs(answer)
	if err == nil {
		items := b.Items
		if m.Whole && len(inputs) > 0 && len(inputs[0].Shape) > 0 {
			items = int(inputs[0].Shape[0])
		}
		err = d.check(outputs, items)
	}
	if err == nil {
		err = split(b.Portions, b.Items, outputs, m.Batched)
	}
	if err != nil {
		return r.wrong(m, err)
	}
	return nil
}

// failure distinguishes a lost server from one that refused the batch. A call without an answer in time counts as a
// lost server, although its queries may be valid.
func (r *runner) failure(err error) error {
	switch s, _ := status.FromError(err); s.Code() {
	case codes.ResourceExhausted:
		if strings.Contains(s.Message(), dataplane.ErrOutOfMemory.Error()) {
			err = fmt.Errorf("openinference: %s: %w", r.b.c.Address, dataplane.ErrOutOfMemory)
			break
		}
		err = fmt.Errorf("openinference: %s: %w", r.b.c.Address, err)
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Unauthenticated, codes.PermissionDenied:
		err = fmt.Errorf("openinference: %s: %w: %w", r.b.c.Address, dataplane.ErrInstanceLost, err)
	default:
		err = fmt.Errorf("openinference: %s: %w", r.b.c.Address, err)
	}
	return &dataplane.RemoteError{What: "the model server failed", Err: err}
}
