package loadgen

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
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

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// protocol is the part of the public protocol that the generator speaks, as descriptors: what its codec is checked against.
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
  field { name: "parameters" number: 4 type: TYPE_MESSAGE label: LABEL_REPEATED type_name: ".inference.ModelInferRequest.ParametersEntry" }
  field { name: "inputs" number: 5 type: TYPE_MESSAGE label: LABEL_REPEATED type_name: ".inference.ModelInferRequest.InferInputTensor" }
  field { name: "raw_input_contents" number: 7 type: TYPE_BYTES label: LABEL_REPEATED }
  nested_type { name: "ParametersEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type: TYPE_MESSAGE label: LABEL_OPTIONAL type_name: ".inference.InferParameter" } }
  nested_type { name: "InferInputTensor"
    field { name: "name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "datatype" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "shape" number: 3 type: TYPE_INT64 label: LABEL_REPEATED }
    field { name: "contents" number: 5 type: TYPE_MESSAGE label: LABEL_OPTIONAL type_name: ".inference.InferTensorContents" } } }
message_type { name: "ModelInferResponse"
  field { name: "model_name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "model_version" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "id" number: 3 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "parameters" number: 4 type: TYPE_MESSAGE label: LABEL_REPEATED type_name: ".inference.ModelInferResponse.ParametersEntry" }
  field { name: "outputs" number: 5 type: TYPE_MESSAGE label: LABEL_REPEATED type_name: ".inference.ModelInferRequest.InferInputTensor" }
  field { name: "raw_output_contents" number: 6 type: TYPE_BYTES label: LABEL_REPEATED }
  nested_type { name: "ParametersEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type: TYPE_MESSAGE label: LABEL_OPTIONAL type_name: ".inference.InferParameter" } } }
message_type { name: "ModelMetadataRequest"
  field { name: "name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "version" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL } }
message_type { name: "ModelMetadataResponse"
  field { name: "name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "versions" number: 2 type: TYPE_STRING label: LABEL_REPEATED }
  field { name: "platform" number: 3 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "inputs" number: 4 type: TYPE_MESSAGE label: LABEL_REPEATED type_name: ".inference.ModelInferRequest.InferInputTensor" }
  field { name: "outputs" number: 5 type: TYPE_MESSAGE label: LABEL_REPEATED type_name: ".inference.ModelInferRequest.InferInputTensor" } }
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

// encode builds a message of the protocol from its text form.
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

func TestMarshalInfer(t *testing.T) {
	long := bytes.Repeat([]byte{1, 2, 3, 4}, copyBelow)
	for _, r := range []*Request{
		{Model: "m", Inputs: []tensor.Tensor{{Name: "x", DType: tensor.FP32, Shape: []int64{1, 2}, Data: make([]byte, 8)}}},
		{
			Model: "m", Version: "3", Timeout: 1500 * time.Microsecond, Priority: 2, MinAccuracy: 0.75,
			Inputs: []tensor.Tensor{
				{Name: "a", DType: tensor.Uint8, Shape: []int64{int64(len(long))}, Data: long},
				{Name: "b", DType: tensor.Bytes, Shape: []int64{}, Data: []byte{0, 0, 0, 0}},
				{Name: "c", DType: tensor.Uint8, Shape: []int64{2, int64(len(long)) / 2}, Data: long},
			},
		},
	} {
		m := message(t, "ModelInferRequest")
		if err := proto.Unmarshal(marshalInfer(r).Materialize(), m); err != nil {
			t.Fatal(err)
		}
		if len(m.GetUnknown()) > 0 {
			t.Errorf("fields that the protocol does not know: %v", m.GetUnknown())
		}
		get := func(m protoreflect.Message, name string) protoreflect.Value {
			return m.Get(m.Descriptor().Fields().ByName(protoreflect.Name(name)))
		}
		if get(m, "model_name").String() != r.Model || get(m, "model_version").String() != r.Version {
			t.Errorf("model %v", m)
		}
		inputs, raw := get(m, "inputs").List(), get(m, "raw_input_contents").List()
		if inputs.Len() != len(r.Inputs) || raw.Len() != len(r.Inputs) {
			t.Fatalf("%d inputs and %d contents, want %d", inputs.Len(), raw.Len(), len(r.Inputs))
		}
		for i, want := range r.Inputs {
			in := inputs.Get(i).Message()
			var shape []int64
			for k := range get(in, "shape").List().Len() {
				shape = append(shape, get(in, "shape").List().Get(k).Int())
			}
			if get(in, "name").String() != want.Name || get(in, "datatype").String() != want.DType.String() || fmt.Sprint(shape) != fmt.Sprint(want.Shape) || !bytes.Equal(raw.Get(i).Bytes(), want.Data) {
				t.Errorf("input %d is %v", i, in)
			}
		}
		parameters := map[string]string{}
		get(m, "parameters").Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			parameters[k.String()] = strings.Join(strings.Fields(fmt.Sprint(v.Message())), " ")
			return true
		})
		want := map[string]string{}
		if r.Timeout > 0 {
			want = map[string]string{"timeout": "int64_param:1500", "priority": "int64_param:2", "min_accuracy": "double_param:0.75"}
		}
		if fmt.Sprint(parameters) != fmt.Sprint(want) {
			t.Errorf("parameters %v, want %v", parameters, want)
		}
	}
}

const answerText = `model_name: "m" model_version: "7"
parameters { key: "variant" value { string_param: "large" } } parameters { key: "accuracy" value { double_param: 0.875 } }
parameters { key: "queue_us" value { int64_param: 1200 } } parameters { key: "batch_size" value { uint64_param: 4 } }
outputs { name: "label" datatype: "INT64" shape: 1 } outputs { name: "p" datatype: "FP32" shape: 1 shape: 2 }
raw_output_contents: "\005\000\000\000\000\000\000\000" raw_output_contents: "\000\000\200\077\000\000\000\000"`

func checkAnswer(t *testing.T, a *Answer, variant string) {
	t.Helper()
	if a.Variant != variant || len(a.Outputs) != 2 || a.Outputs[0].Name != "label" || a.Outputs[0].Data[0] != 5 || a.Outputs[1].Shape[1] != 2 {
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

func TestUnmarshalInfer(t *testing.T) {
	var a Answer
	if err := unmarshalInfer(encode(t, "ModelInferResponse", answerText), &a); err != nil {
		t.Fatal(err)
	}
	checkAnswer(t, &a, "large")
	// A server that mirrors typed contents and has no parameters of ours.
	a = Answer{}
	if err := unmarshalInfer(encode(t, "ModelInferResponse", `model_version: "7"
		outputs { name: "label" datatype: "INT64" shape: 1 contents { int64_contents: 5 } }
		outputs { name: "p" datatype: "FP32" shape: 1 shape: 2 contents { fp32_contents: 1 fp32_contents: 0 } }`), &a); err != nil {
		t.Fatal(err)
	}
	checkAnswer(t, &a, "7")
	for text, want := range map[string]string{
		`outputs { datatype: "BOOL" contents { bool_contents: true bool_contents: false } }`: "[1 0]",
		`outputs { datatype: "INT8" contents { int_contents: -1 } }`:                         "[255]",
		`outputs { datatype: "UINT16" contents { uint_contents: 258 } }`:                     "[2 1]",
		`outputs { datatype: "INT32" contents { int_contents: -2 } }`:                        "[254 255 255 255]",
		`outputs { datatype: "BYTES" contents { bytes_contents: "ab" bytes_contents: "" } }`: "[2 0 0 0 97 98 0 0 0 0]",
		`outputs { datatype: "FP64" contents { fp64_contents: 1 } }`:                         "[0 0 0 0 0 0 240 63]",
		`outputs { datatype: "UINT64" contents { uint64_contents: 3 } }`:                     "[3 0 0 0 0 0 0 0]",
	} {
		a = Answer{}
		if err := unmarshalInfer(encode(t, "ModelInferResponse", text), &a); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(a.Outputs[0].Data); got != want {
			t.Errorf("%s reads as %s, want %s", text, got, want)
		}
	}
	for _, bad := range [][]byte{{0xff}, {0x2a, 5, 1}, {0x08}, encode(t, "ModelInferResponse", `raw_output_contents: "x"`), {0x32, 3, 1, 2}} {
		if err := unmarshalInfer(bad, &Answer{}); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
}

func FuzzUnmarshalInfer(f *testing.F) {
	f.Add(encode(f, "ModelInferResponse", answerText))
	f.Add([]byte{0x2a, 5, 1})
	f.Fuzz(func(t *testing.T, m []byte) {
		var a Answer
		if unmarshalInfer(m, &a) == nil {
			numbers(3).Right(a.Outputs, 0, 1)
		}
		_, _ = unmarshalMetadata(m)
	})
}

func FuzzDecodeHTTP(f *testing.F) {
	f.Add([]byte(`{"outputs":[{"name":"label","datatype":"INT64","shape":[1],"parameters":{"binary_data_size":8}}]}12345678`), "98")
	f.Add([]byte(`{"parameters":{"batch_size":1e99},"outputs":[{"name":"label","datatype":"FP32","shape":[1],"data":[[1,2],[3]]}]}`), "")
	f.Fuzz(func(t *testing.T, body []byte, head string) {
		if a, err := decodeHTTP(body, head); err == nil {
			numbers(3).Right(a.Outputs, 0, 1)
		}
	})
}

// bytesCodec hands messages to the test's server as they came.
type bytesCodec struct{}

func (bytesCodec) Name() string { return "proto" }
func (bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}
func (bytesCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// serve starts a gRPC server with one answer for every method and returns its address.
func serve(t testing.TB, handle func(ctx context.Context, method string, m []byte) ([]byte, error)) (address string, s *grpc.Server) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s = grpc.NewServer(grpc.ForceServerCodecV2(bytesCodec{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
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
	meta := encode(t, "ModelMetadataResponse", `name: "m" inputs { name: "x" datatype: "FP32" shape: -1 shape: 28 } outputs { name: "y" datatype: "INT64" shape: -1 }`)
	address, server := serve(t, func(ctx context.Context, method string, m []byte) ([]byte, error) {
		if method == methodMetadata {
			return meta, nil
		}
		if method != methodInfer {
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
	for model, want := range map[string]serving.Outcome{"full": serving.Refused, "late": serving.Dropped, "bad": serving.Failed, "slow": serving.Dropped} {
		if got := outcome(model); got != want {
			t.Errorf("%s counts as %v, want %v", model, got, want)
		}
	}
	// What the transport says of a server that is gone is no refusal.
	server.Stop()
	if got := outcome("full"); got != serving.Failed {
		t.Errorf("a lost server counts as %v, want failed", got)
	}
}

func TestHTTP(t *testing.T) {
	answers := map[string]func(w http.ResponseWriter, r *http.Request){
		"binary": func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			n, _ := strconv.Atoi(r.Header.Get(headerLength))
			var doc struct {
				Parameters map[string]any
				Inputs     []jsonTensor
			}
			if err := json.Unmarshal(body[:n], &doc); err != nil || doc.Parameters["binary_data_output"] != true || doc.Parameters["timeout"] != 2000.0 || *doc.Inputs[0].Parameters.Size != 8 || len(body) != n+8 {
				http.Error(w, `{"error":"bad request"}`, http.StatusBadRequest)
				return
			}
			text := `{"model_version":"7","parameters":{"variant":"large","accuracy":0.875,"queue_us":1200,"batch_size":4},"outputs":[{"name":"label","datatype":"INT64","shape":[1],"parameters":{"binary_data_size":8}},{"name":"p","datatype":"FP32","shape":[1,2],"data":[[1.0,0]]}]}`
			w.Header().Set(headerLength, strconv.Itoa(len(text)))
			fmt.Fprint(w, text, "\x05\x00\x00\x00\x00\x00\x00\x00")
		},
		"json": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"model_version":"7","outputs":[{"name":"label","datatype":"INT64","shape":[1],"data":[5]},{"name":"p","datatype":"FP32","shape":[1,2],"data":[1,0]}]}`)
		},
		"full": func(w http.ResponseWriter, r *http.Request) { http.Error(w, `{"error":"queue full"}`, 503) },
		"late": func(w http.ResponseWriter, r *http.Request) { http.Error(w, `{"error":"late"}`, 504) },
		"bad":  func(w http.ResponseWriter, r *http.Request) { http.Error(w, `not json`, 400) },
		"odd":  func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"outputs":[{"data":[{}]}]}`) },
		"slow": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // the server notices a client that goes only once the body is read
			<-r.Context().Done()
		},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v2/models/{m}/infer", func(w http.ResponseWriter, r *http.Request) { answers[r.PathValue("m")](w, r) })
	mux.HandleFunc("POST /v2/models/{m}/versions/3/infer", func(w http.ResponseWriter, r *http.Request) { answers[r.PathValue("m")](w, r) })
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
		a, err := target.Infer(t.Context(), &Request{Model: model, Version: "3", Timeout: 2 * time.Millisecond, Inputs: numbers(5).Tensors(2, 1)})
		if err != nil {
			t.Fatal(err)
		}
		checkAnswer(t, a, variant)
	}
	for model, want := range map[string]serving.Outcome{"full": serving.Refused, "late": serving.Dropped, "bad": serving.Failed, "odd": serving.Failed, "slow": serving.Dropped} {
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
	if _, err := target.Infer(t.Context(), &Request{Model: "json"}); err == nil || outcomeOf(nil, nil, err) != serving.Failed {
		t.Errorf("a lost server: %v", err)
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

func TestJSONData(t *testing.T) {
	for text, want := range map[string]string{"[[1,2],[3]]": "[1 0 2 0 3 0]", "[-1]": "[255 255]"} {
		got, err := jsonData(tensor.Int16, []byte(text))
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s reads as %v, %v", text, got, err)
		}
	}
	if got, err := jsonData(tensor.Uint64, []byte("[18446744073709551615]")); err != nil || string(got) != strings.Repeat("\xff", 8) {
		t.Errorf("the largest number reads as %v, %v", got, err)
	}
	for _, bad := range []string{"[1.5]", "[null]", "[", `[1e99]`} {
		if _, err := jsonData(tensor.Int64, []byte(bad)); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
	var a Answer
	for _, f := range []float64{math.NaN(), math.Inf(1), -1, 1e300} {
		a.parameter("queue_us", "", clampInt(f), f)
		a.parameter("batch_size", "", clampInt(f), f)
		if a.Queue < 0 || a.Batch < 0 {
			t.Errorf("%v gives a queue of %v and a batch of %d", f, a.Queue, a.Batch)
		}
	}
}

// BenchmarkGRPC is the whole client against a server that does nothing, both in this process.
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

func BenchmarkMarshalInfer(b *testing.B) {
	r := &Request{Model: "digits", Timeout: time.Second, Inputs: []tensor.Tensor{{Name: "image", DType: tensor.FP32, Shape: []int64{1, 28, 28}, Data: make([]byte, 28*28*4)}}}
	b.ReportAllocs()
	for b.Loop() {
		marshalInfer(r)
	}
}

// A whole run over a real connection: everything is answered, labels are judged, nothing is left behind.
func TestRunOverGRPC(t *testing.T) {
	reply := encode(t, "ModelInferResponse", answerText) // always says 5
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
	if o.Served != 500 || o.MeasuredAccuracy == nil || *o.MeasuredAccuracy != 0.1 || *o.EffectiveAccuracy != 0.875 || *o.MeanBatch != 4 || len(res.Errors) != 0 {
		t.Errorf("%+v, errors %+v", o, res.Errors)
	}
	if len(res.Report.Variants) != 1 || res.Report.Variants[0].Name != "large" {
		t.Errorf("variants %+v", res.Report.Variants)
	}
}
