package loadgen

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/bounded"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// protocol has the descriptors of the public protocol as far as the generator speaks it. They are written out here, so
// that client and generated code are checked against an independent source.
const protocol = `
name: "inference.proto" package: "inference" syntax: "proto3"
message_type { name: "InferParameter"
  field { name: "bool_param" number: 1 type: TYPE_BOOL label: LABEL_OPTIONAL oneof_index: 0 }
  field { name: "int64_param" number: 2 type: TYPE_INT64 label: LABEL_OPTIONAL oneof_index: 0 }
  field { name: "string_param" number: 3 type: TYPE_STRING label: LABEL_OPTIONAL oneof_index: 0 }
  field { name: "double_param" number: 4 type: TYPE_DOUBLE label: LABEL_OPTIONAL oneof_index: 0 }
  field { name: "uint64_param" number: 5 type: TYPE_UINT64 label: LABEL_OPTIONAL oneof_index: 0 }
  oneof_decl { name: "parameter_choice" } }
message_type { name: "InferTensorContents"
  field { name: "bool_contents" number: 1 type: TYPE_BOOL label: LABEL_REPEATED }
  field { name: "int_contents" number: 2 type: TYPE_INT32 label: LABEL_REPEATED }
  field { name: "int64_contents" number: 3 type: TYPE_INT64 label: LABEL_REPEATED }
  field { name: "uint_contents" number: 4 type: TYPE_UINT32 label: LABEL_REPEATED }
  field { name: "uint64_contents" number: 5 type: TYPE_UINT64 label: LABEL_REPEATED }
  field { name: "fp32_contents" number: 6 type: TYPE_FLOAT label: LABEL_REPEATED }
  field { name: "fp64_contents" number: 7 type: TYPE_DOUBLE label: LABEL_REPEATED }
  field { name: "bytes_contents" number: 8 type: TYPE_BYTES label: LABEL_REPEATED } }
message_type { name: "ModelInferRequest"
  field { name: "model_name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "model_version" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "id" number: 3 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "parameters" number: 4 type: TYPE_MESSAGE label: LABEL_REPEATED
      type_name: ".inference.ModelInferRequest.ParametersEntry" }
  field { name: "inputs" number: 5 type: TYPE_MESSAGE label: LABEL_REPEATED
      type_name: ".inference.ModelInferRequest.InferInputTensor" }
  field { name: "raw_input_contents" number: 7 type: TYPE_BYTES label: LABEL_REPEATED }
  nested_type { name: "ParametersEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type: TYPE_MESSAGE label: LABEL_OPTIONAL type_name: ".inference.InferParameter" } }
  nested_type { name: "InferInputTensor"
    field { name: "name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "datatype" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "shape" number: 3 type: TYPE_INT64 label: LABEL_REPEATED }
    field { name: "contents" number: 5 type: TYPE_MESSAGE label: LABEL_OPTIONAL
        type_name: ".inference.InferTensorContents" } } }
message_type { name: "ModelInferResponse"
  field { name: "model_name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "model_version" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "id" number: 3 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "parameters" number: 4 type: TYPE_MESSAGE label: LABEL_REPEATED
      type_name: ".inference.ModelInferResponse.ParametersEntry" }
  field { name: "outputs" number: 5 type: TYPE_MESSAGE label: LABEL_REPEATED
      type_name: ".inference.ModelInferRequest.InferInputTensor" }
  field { name: "raw_output_contents" number: 6 type: TYPE_BYTES label: LABEL_REPEATED }
  nested_type { name: "ParametersEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type: TYPE_MESSAGE label: LABEL_OPTIONAL type_name: ".inference.InferParameter" }
        } }
message_type { name: "ModelMetadataRequest"
  field { name: "name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "version" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL } }
message_type { name: "ModelMetadataResponse"
  field { name: "name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "versions" number: 2 type: TYPE_STRING label: LABEL_REPEATED }
  field { name: "platform" number: 3 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "inputs" number: 4 type: TYPE_MESSAGE label: LABEL_REPEATED
      type_name: ".inference.ModelInferRequest.InferInputTensor" }
  field { name: "outputs" number: 5 type: TYPE_MESSAGE label: LABEL_REPEATED
      type_name: ".inference.ModelInferRequest.InferInputTensor" } }
`

func message(t testing.TB, name string) *dynamicpb.Message {
	t.Helper()
	fd := &descriptorpb.FileDescriptorProto{}
	if err := prototext.Unmarshal([]byte(protocol), fd); err != nil {
		t.Fatal(err)
	}
	file, err := protodesc.NewFile(fd, nil)
	if err != nil {
		t.Fatal(err)
	}
	return dynamicpb.NewMessage(file.Messages().ByName(protoreflect.Name(name)))
}

// encode returns a message of the protocol from its text form.
func encode(t testing.TB, name, text string) []byte {
	t.Helper()
	m := message(t, name)
	if err := prototext.Unmarshal([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const answerText = `model_name: "m" model_version: "7"
parameters { key: "variant" value { string_param: "large" } }
    parameters { key: "accuracy" value { double_param: 0.875 } }
parameters { key: "queue_us" value { int64_param: 1200 } } parameters { key: "batch_size" value { uint64_param: 4 } }
outputs { name: "label" datatype: "INT64" shape: 1 } outputs { name: "p" datatype: "FP32" shape: 1 shape: 2 }
raw_output_contents: "\005\000\000\000\000\000\000\000" raw_output_contents: "\000\000\200\077\000\000\000\000"`

func checkAnswer(t *testing.T, a *Answer, variant string) {
	t.Helper()
	if a.Variant != variant || len(a.Outputs) != 2 || a.Outputs[0].Name != "label" || a.Outputs[0].Data[0] != 5 ||
		a.Outputs[1].Shape[1] != 2 {
		t.Fatalf("answer %+v", a)
	}
	for i := range a.Outputs {
		if err := a.Outputs[i].Validate(); err != nil {
			t.Error(err)
		}
	}
	if variant == "large" && (a.Accuracy != 0.875 || a.Queue != 1200*time.Microsecond || a.Batch != 4) {
		t.Errorf("answer %+v", a)
	}
}

func FuzzDecodeHTTP(f *testing.F) {
	f.Add([]byte(`{"outputs":[{"name":"label","datatype":"INT64","shape":[1],`+
		`"parameters":{"binary_data_size":8}}]}12345678`), "98")
	f.Add([]byte(`{"parameters":{"batch_size":1e99},"outputs":[{"name":"label","datatype":"FP32","shape":[1],`+
		`"data":[[1,2],[3]]}]}`), "")
	f.Fuzz(func(t *testing.T, body []byte, head string) {
		defer bounded.Watch(t, bounded.Fuzz(len(body)+len(head)))()
		if a, err := decodeHTTP(body, head); err == nil {
			numbers(3).Right(a.Outputs, 0, 1)
		}
	})
}

// bytesCodec passes messages to the test's server as bytes.
type bytesCodec struct{}

func (bytesCodec) Name() string { return "proto" }
func (bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}
func (bytesCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// serve starts a gRPC server that answers every method by handle, and returns its address.
func serve(t testing.TB, handle func(ctx context.Context, method string, m []byte) ([]byte, error)) (address string,
	s *grpc.Server) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s = grpc.NewServer(grpc.ForceServerCodecV2(bytesCodec{}),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			method, _ := grpc.MethodFromServerStream(stream)
			var m []byte
			if err := stream.RecvMsg(&m); err != nil {
				return err
			}
			out, err := handle(stream.Context(), method, m)
			if err != nil {
				return err
			}
			return stream.SendMsg(&out)
		}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	t.Cleanup(func() {
		s.Stop()
		<-done
	})
	return l.Addr().String(), s
}

func TestGRPC(t *testing.T) {
	reply := encode(t, "ModelInferResponse", answerText)
	meta := encode(t, "ModelMetadataResponse",
		`name: "m" inputs { name: "x" datatype: "FP32" shape: -1 shape: 28 } outputs { name: "y" datatype: "INT64" `+
			`shape: -1 }`)
	address, server := serve(t, func(ctx context.Context, method string, m []byte) ([]byte, error) {
		if method == pb.GRPCInferenceService_ModelMetadata_FullMethodName {
			return meta, nil
		}
		if method != pb.GRPCInferenceService_ModelInfer_FullMethodName {
			return nil, status.Error(codes.Unimplemented, method)
		}
		r := message(t, "ModelInferRequest")
		if err := proto.Unmarshal(m, r); err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
		switch r.Get(r.Descriptor().Fields().ByName("model_name")).String() {
		case "full":
			return nil, status.Error(codes.Unavailable, "queue full")
		case "late":
			return nil, status.Error(codes.DeadlineExceeded, "certain to be late")
		case "bad":
			return nil, status.Error(codes.InvalidArgument, "bad")
		case "slow":
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return reply, nil
	})
	target, err := Dial("grpc://"+address, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	specs, err := target.Inputs(t.Context(), "m")
	if err != nil || len(specs) != 1 || specs[0].DType != tensor.FP32 || fmt.Sprint(specs[0].Shape) != "[-1 28]" {
		t.Fatalf("inputs %+v, %v", specs, err)
	}
	samples, err := Synthetic(specs, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	a, err := target.Infer(t.Context(), &Request{Model: "m", Inputs: samples.Tensors(0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	checkAnswer(t, a, "large")
	outcome := func(model string) serving.Outcome {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if model != "slow" {
			ctx = t.Context()
		}
		defer cancel()
		_, err := target.Infer(ctx, &Request{Model: model})
		if err == nil {
			t.Fatalf("%s was served", model)
		}
		return outcomeOf(nil, ctx.Err(), err)
	}
	for model, want := range map[string]serving.Outcome{
		"full": serving.Refused, "late": serving.Dropped, "bad": serving.Failed, "slow": serving.Dropped,
	} {
		if got := outcome(model); got != want {
			t.Errorf("%s counts as %v, want %v", model, got, want)
		}
	}
	// An error of the transport, because the server is gone, is no refusal.
	server.Stop()
	if got := outcome("full"); got != serving.Failed {
		t.Errorf("a lost server counts as %v, want failed", got)
	}
}

func TestHTTP(t *testing.T) {
	answers := map[string]func(w http.ResponseWriter, r *http.Request){
		"binary": func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			n, _ := strconv.Atoi(r.Header.Get(oip.HeaderLength))
			var doc struct {
				Parameters map[string]any
				Inputs     []struct {
					Parameters struct {
						Size *int64 `json:"binary_data_size"`
					}
				}
			}
			if err := json.Unmarshal(body[:n], &doc); err != nil || doc.Parameters["binary_data_output"] != true ||
				doc.Parameters["timeout"] != 2000.0 || *doc.Inputs[0].Parameters.Size != 8 || len(body) != n+8 {
				http.Error(w, `{"error":"bad request"}`, http.StatusBadRequest)
				return
			}
			text := `{"model_version":"7","parameters":{"variant":"large","accuracy":0.875,"queue_us":1200,` +
				`"batch_size":4},"outputs":[{"name":"label","datatype":"INT64","shape":[1],` +
				`"parameters":{"binary_data_size":8}},{"name":"p","datatype":"FP32","shape":[1,2],"data":[[1.0,0]]}]}`
			w.Header().Set(oip.HeaderLength, strconv.Itoa(len(text)))
			fmt.Fprint(w, text, "\x05\x00\x00\x00\x00\x00\x00\x00")
		},
		"json": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w,
				`{"model_version":"7","outputs":[{"name":"label","datatype":"INT64","shape":[1],`+
					`"data":[5]},{"name":"p","datatype":"FP32","shape":[1,2],"data":[1,0]}]}`)
		},
		"full": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, `{"error":"queue full"}`, http.StatusServiceUnavailable)
		},
		"late": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, `{"error":"late"}`, http.StatusGatewayTimeout)
		},
		"bad": func(w http.ResponseWriter, r *http.Request) { http.Error(w, `not json`, 400) },
		"odd": func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"outputs":[{"data":[{}]}]}`) },
		"slow": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // a server notices that a client has gone only when the body is read
			<-r.Context().Done()
		},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v2/models/{m}/infer", func(w http.ResponseWriter, r *http.Request) {
		answers[r.PathValue("m")](w, r)
	})
	mux.HandleFunc("POST /v2/models/{m}/versions/3/infer", func(w http.ResponseWriter, r *http.Request) {
		answers[r.PathValue("m")](w, r)
	})
	mux.HandleFunc("GET /v2/models/{m}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"name":"m","inputs":[{"name":"x","datatype":"INT64","shape":[-1,1]}]}`)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	target, err := Dial(server.URL+"/", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	specs, err := target.Inputs(t.Context(), "m")
	if err != nil || len(specs) != 1 || specs[0].DType != tensor.Int64 {
		t.Fatalf("inputs %+v, %v", specs, err)
	}
	for model, variant := range map[string]string{"binary": "large", "json": "7"} {
		a, err := target.Infer(t.Context(), &Request{
			Model: model, Version: "3", Timeout: 2 * time.Millisecond, Inputs: numbers(5).Tensors(2, 1),
		})
		if err != nil {
			t.Fatal(err)
		}
		checkAnswer(t, a, variant)
	}
	for model, want := range map[string]serving.Outcome{
		"full": serving.Refused, "late": serving.Dropped, "bad": serving.Failed, "odd": serving.Failed,
		"slow": serving.Dropped,
	} {
		ctx, cancel := t.Context(), context.CancelFunc(func() {})
		if model == "slow" {
			ctx, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
		}
		_, err := target.Infer(ctx, &Request{Model: model, Inputs: numbers(1).Tensors(0, 1)})
		if err == nil {
			t.Fatalf("%s was served", model)
		}
		if got := outcomeOf(nil, ctx.Err(), err); got != want {
			t.Errorf("%s counts as %v (%v), want %v", model, got, err, want)
		}
		cancel()
	}
	server.Close()
	if _, err := target.Infer(t.Context(), &Request{Model: "json"}); err == nil ||
		outcomeOf(nil, nil, err) != serving.Failed {
		t.Errorf("a lost server: %v", err)
	}
}

// Parameters that a server invents do no harm.
func TestOddParameters(t *testing.T) {
	var a Answer
	for _, f := range []float64{math.NaN(), math.Inf(1), -1, 1e300} {
		a.parameter("queue_us", "", clampInt(f), f)
		a.parameter("batch_size", "", clampInt(f), f)
		if a.Queue < 0 || a.Batch < 0 {
			t.Errorf("%v gives a queue of %v and a batch of %d", f, a.Queue, a.Batch)
		}
	}
}

func TestDialRefuses(t *testing.T) {
	for _, bad := range []string{"ftp://x", "grpc://", "grpc://a/b", "http://", "://x"} {
		if target, err := Dial(bad, 1); err == nil {
			target.Close()
			t.Errorf("%q was accepted", bad)
		}
	}
}

// BenchmarkGRPC runs the whole client against a server that does nothing, both in this process.
func BenchmarkGRPC(b *testing.B) {
	reply := encode(b, "ModelInferResponse", answerText)
	address, _ := serve(b, func(context.Context, string, []byte) ([]byte, error) { return reply, nil })
	for _, c := range []struct {
		name string
		rate float64
	}{{"1k", 1e3}, {"10k", 1e4}, {"20k", 2e4}} {
		b.Run(c.name, func(b *testing.B) {
			target, err := DialGRPC(address, 0, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer target.Close()
			load(b, target, c.rate, oneApp(numbers(100)))
		})
	}
}

// A whole run over a real connection answers everything, checks labels and leaves nothing behind.
func TestRunOverGRPC(t *testing.T) {
	reply := encode(t, "ModelInferResponse", answerText) // the answer is always 5
	address, _ := serve(t, func(context.Context, string, []byte) ([]byte, error) { return reply, nil })
	target, err := DialGRPC(address, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	res, err := Run(t.Context(), target, oneApp(numbers(10)), even(500, 500*time.Microsecond), Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := &res.Report.Overall
	if o.Served != 500 || o.MeasuredAccuracy == nil || *o.MeasuredAccuracy != 0.1 || *o.EffectiveAccuracy != 0.875 ||
		*o.MeanBatch != 4 || len(res.Errors) != 0 {
		t.Errorf("%+v, errors %+v", o, res.Errors)
	}
	if len(res.Report.Variants) != 1 || res.Report.Variants[0].Name != "large" {
		t.Errorf("variants %+v", res.Report.Variants)
	}
}
