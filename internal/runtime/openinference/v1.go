package openinference

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/tensor"
)

// v1Client asks a server of the protocol v1, such as TensorFlow Serving, what is asked of one of v2. It has the calls
// that a Backend makes which loads no models.
type v1Client struct {
	pb.GRPCInferenceServiceClient // nil: the other calls
	http                          *http.Client
	base                          string
	most                          int64 // bytes of an answer

	mu      sync.Mutex
	outputs map[string][]tensor.Spec // by model and version
}

// newV1Client connects when it is first asked.
func newV1Client(c *Config, trust *tls.Config) *v1Client {
	t := &http.Transport{TLSClientConfig: trust, TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: time.Minute,
		MaxIdleConnsPerHost: mostRuns}
	if c.Dial != nil {
		t.DialContext = func(ctx context.Context, _, address string) (net.Conn, error) { return c.Dial(ctx, address) }
	}
	x := &v1Client{http: &http.Client{Transport: t}, base: "http://", most: int64(c.MaxMessage),
		outputs: make(map[string][]tensor.Spec)}
	if c.TLS {
		x.base = "https://"
	}
	x.base += c.Address + "/v1/models/"
	for _, m := range c.Models {
		if len(m.Outputs) > 0 {
			x.outputs[v1Path(m.Name, m.Version)] = m.Outputs
		}
	}
	return x
}

// mostRuns is how many connections of an instance are kept for later runs.
const mostRuns = 64

// Close ends the connections.
func (x *v1Client) Close() error {
	x.http.CloseIdleConnections()
	return nil
}

// v1Path is the path of a model below that of all models.
func v1Path(name, version string) string {
	path := url.PathEscape(name)
	if version != "" {
		path += "/versions/" + url.PathEscape(version)
	}
	return path
}

// ServerMetadata implements pb.GRPCInferenceServiceClient.
func (*v1Client) ServerMetadata(context.Context, *pb.ServerMetadataRequest, ...grpc.CallOption) (
	*pb.ServerMetadataResponse, error) {
	return &pb.ServerMetadataResponse{}, nil
}

// ModelConfig implements pb.GRPCInferenceServiceClient.
func (*v1Client) ModelConfig(context.Context, *pb.ModelConfigRequest, ...grpc.CallOption) (*pb.ModelConfigResponse,
	error) {
	return nil, status.Error(codes.Unimplemented, "the protocol v1 has no configurations of models")
}

// ModelReady implements pb.GRPCInferenceServiceClient.
func (x *v1Client) ModelReady(ctx context.Context, r *pb.ModelReadyRequest, _ ...grpc.CallOption) (
	*pb.ModelReadyResponse, error) {
	body, err := x.call(ctx, http.MethodGet, v1Path(r.GetName(), r.GetVersion()), nil)
	if err != nil {
		return nil, err
	}
	var about struct {
		Ready    any                      // of KServe: true, or "True"
		Versions []struct{ State string } `json:"model_version_status"`
	}
	if err := json.Unmarshal(body, &about); err != nil {
		return nil, status.Errorf(codes.Internal, "the status of the model: %v", err)
	}
	ready := about.Ready == true || about.Ready == "True" || about.Ready == "true"
	for _, v := range about.Versions {
		ready = ready || v.State == "AVAILABLE"
	}
	return &pb.ModelReadyResponse{Ready: ready}, nil
}

// ModelMetadata implements pb.GRPCInferenceServiceClient.
func (x *v1Client) ModelMetadata(ctx context.Context, r *pb.ModelMetadataRequest, _ ...grpc.CallOption) (
	*pb.ModelMetadataResponse, error) {
	path := v1Path(r.GetName(), r.GetVersion())
	body, err := x.call(ctx, http.MethodGet, path+"/metadata", nil)
	if err != nil {
		return nil, err
	}
	inputs, outputs, err := oip.ParseV1Metadata(body)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	x.mu.Lock()
	x.outputs[path] = outputs
	x.mu.Unlock()
	return &pb.ModelMetadataResponse{
		Name: r.GetName(), Inputs: oip.TensorMetadata(inputs), Outputs: oip.TensorMetadata(outputs),
	}, nil
}

// ModelInfer implements pb.GRPCInferenceServiceClient.
func (x *v1Client) ModelInfer(ctx context.Context, r *pb.ModelInferRequest, _ ...grpc.CallOption) (
	*pb.ModelInferResponse, error) {
	path := v1Path(r.GetModelName(), r.GetModelVersion())
	outputs, err := x.outputsOf(ctx, r.GetModelName(), r.GetModelVersion())
	if err != nil {
		return nil, err
	}
	inputs, err := oip.DecodeRequest(r, nil)
	if err != nil {
		return nil, err
	}
	ask, err := oip.AppendV1Request(nil, inputs)
	if err != nil {
		return nil, err
	}
	body, err := x.call(ctx, http.MethodPost, path+":predict", ask)
	if err != nil {
		return nil, err
	}
	got, err := oip.DecodeV1Answer(body, outputs, oip.Bounds{})
	if err != nil {
		return nil, status.Errorf(codes.Internal, "its answer: %v", err)
	}
	if len(r.GetOutputs()) > 0 {
		got = slices.DeleteFunc(got, func(t tensor.Tensor) bool {
			return !slices.ContainsFunc(r.GetOutputs(), func(o *pb.ModelInferRequest_InferRequestedOutputTensor) bool {
				return o.GetName() == t.Name
			})
		})
	}
	out := &pb.ModelInferResponse{}
	oip.EncodeOutputs(out, got, nil)
	return out, nil
}

// outputsOf returns the outputs of a model, which the server is asked for unless they are known.
func (x *v1Client) outputsOf(ctx context.Context, name, version string) ([]tensor.Spec, error) {
	known := func() ([]tensor.Spec, bool) {
		x.mu.Lock()
		defer x.mu.Unlock()
		s, ok := x.outputs[v1Path(name, version)]
		return s, ok
	}
	if s, ok := known(); ok {
		return s, nil
	}
	if _, err := x.ModelMetadata(ctx, &pb.ModelMetadataRequest{Name: name, Version: version}); err != nil {
		return nil, status.Errorf(status.Code(err), "the server does not say what the outputs of %q are (%v): list "+
			"them under outputs of the app or stage", name, err)
	}
	s, _ := known()
	return s, nil
}

// call returns the body of an answer, or an error with the code that a server of v2 would give.
func (x *v1Client) call(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, x.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	w, err := x.http.Do(r)
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	defer func() { _ = w.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(w.Body, x.most+1))
	switch {
	case err != nil:
		return nil, status.Error(codes.Unavailable, err.Error())
	case int64(len(answer)) > x.most:
		return nil, status.Errorf(codes.Internal, "the answer has more than %d bytes", x.most)
	case w.StatusCode == http.StatusOK:
		return answer, nil
	}
	code, ok := codesOf[w.StatusCode]
	if !ok {
		code = codes.Internal
	}
	var said struct{ Error string }
	if json.Unmarshal(answer, &said) != nil || said.Error == "" {
		said.Error = fmt.Sprintf("%.200s", answer)
	}
	return nil, status.Errorf(code, "%s: %s", w.Status, said.Error)
}

var codesOf = map[int]codes.Code{
	http.StatusBadRequest: codes.InvalidArgument, http.StatusUnauthorized: codes.Unauthenticated,
	http.StatusForbidden: codes.PermissionDenied, http.StatusNotFound: codes.NotFound,
	http.StatusPreconditionFailed: codes.FailedPrecondition, http.StatusTooManyRequests: codes.ResourceExhausted,
	http.StatusNotImplemented: codes.Unimplemented, http.StatusBadGateway: codes.Unavailable,
	http.StatusServiceUnavailable: codes.Unavailable, http.StatusGatewayTimeout: codes.DeadlineExceeded,
}
