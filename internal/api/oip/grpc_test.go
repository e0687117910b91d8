package oip

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/bounded"
	"github.com/sluice-serving/sluice/tensor"
)

func typed(datatype string, shape []int64, c *pb.InferTensorContents) *pb.ModelInferRequest {
	return &pb.ModelInferRequest{
		Inputs: []*pb.ModelInferRequest_InferInputTensor{{Name: "x", Datatype: datatype, Shape: shape, Contents: c}},
	}
}

func TestGRPCTraps(t *testing.T) {
	raw := typed("INT8", []int64{2}, nil)
	raw.RawInputContents = [][]byte{{1, 2}}
	both := typed("INT8", []int64{2}, &pb.InferTensorContents{IntContents: []int32{1, 2}})
	both.RawInputContents = [][]byte{{1, 2}}
	few := typed("INT8", []int64{2}, nil)
	few.RawInputContents = [][]byte{{1}}
	extra := typed("INT8", []int64{2}, nil)
	extra.RawInputContents = [][]byte{{1, 2}, {3}}
	cut := typed("BYTES", []int64{1}, nil)
	cut.RawInputContents = [][]byte{{5, 0, 0, 0, 'a'}}
	for _, c := range []struct {
		name string
		r    *pb.ModelInferRequest
		err  string
	}{
		{
			"14 int8 in int_contents", typed("INT8", []int64{2},
				&pb.InferTensorContents{IntContents: []int32{-128, 127}}), "",
		},
		{
			"14 out of range", typed("INT8", []int64{1}, &pb.InferTensorContents{IntContents: []int32{128}}),
			"int_contents[0] is 128",
		},
		{
			"14 uint16 out of range", typed("UINT16", []int64{1},
				&pb.InferTensorContents{UintContents: []uint32{65536}}), "UINT16",
		},
		{
			"14 wrong field", typed("INT64", []int64{1}, &pb.InferTensorContents{IntContents: []int32{1}}),
			"int64_contents",
		},
		{
			"14 two kinds", typed("INT8", []int64{1}, &pb.InferTensorContents{
				IntContents: []int32{1}, Fp32Contents: []float32{1},
			}), "fp32_contents",
		},
		{"14 too few", typed("FP32", []int64{2}, &pb.InferTensorContents{Fp32Contents: []float32{1}}), "1 elements"},
		{
			"8 half precision only raw", typed("FP16", []int64{1}, &pb.InferTensorContents{Fp32Contents: []float32{1}}),
			"raw_input_contents",
		},
		{"15 raw", raw, ""},
		{"15 raw beside typed", both, "beside raw_input_contents"},
		{"15 raw of the wrong size", few, `"x"`},
		{"15 too many raw", extra, "2 entries for 1 inputs"},
		{"7 BYTES cut off", cut, "claims 5 bytes"},
		{"10 negative", typed("INT8", []int64{-1}, nil), "negative"},
		{"10 overflow", typed("INT8", []int64{16, 1152921504606846978}, nil), "exceed"},
		{"hostile: rank", typed("INT8", make([]int64, 1000), nil), "dimensions"},
		{"hostile: nothing", &pb.ModelInferRequest{}, "inputs"},
		{"hostile: nil input", &pb.ModelInferRequest{Inputs: []*pb.ModelInferRequest_InferInputTensor{nil}}, "no name"},
	} {
		_, err := DecodeRequest(c.r, nil)
		switch {
		case c.err == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: error %v, want one that says %q", c.name, err, c.err)
		}
	}
}

// No message makes the decoder panic, and a decoded message is unchanged after encoding and decoding.
func FuzzDecodeGRPCRequest(f *testing.F) {
	for _, r := range []*pb.ModelInferRequest{
		typed("INT8", []int64{2}, &pb.InferTensorContents{IntContents: []int32{1, 2}}),
		typed("BYTES", []int64{1, 1}, &pb.InferTensorContents{BytesContents: [][]byte{[]byte("a")}}),
		{Parameters: map[string]*pb.InferParameter{"timeout": Int(5), "min_accuracy": Double(.5), "x": String("y")},
			Inputs: []*pb.ModelInferRequest_InferInputTensor{
				{Name: "x", Datatype: "FP32", Shape: []int64{1, 2}},
			}, RawInputContents: [][]byte{make([]byte, 8)}},
	} {
		b, err := proto.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r pb.ModelInferRequest
		var in []tensor.Tensor
		err := errors.New("not decoded")
		bounded.Input(t, b, decodedPerByte, func() {
			if (Bounds{}).CheckRequest(b) != nil || proto.Unmarshal(b, &r) != nil {
				return
			}
			_, _ = DecodeParams(r.Parameters)
			in, err = DecodeRequest(&r, nil)
		})
		if err != nil {
			return
		}
		for k := range in {
			if err := in[k].Validate(); err != nil {
				t.Fatalf("accepted: %v", err)
			}
		}
		again, err := DecodeRequest(EncodeRequest("m", "", "", in, nil), nil)
		if err != nil {
			t.Fatalf("not accepted again: %v", err)
		}
		sameTensors(t, "again", again, in)
	})
}

// The same for HTTP bodies.
func FuzzDecodeHTTPRequest(f *testing.F) {
	f.Add([]byte(`{"id":"1","inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[[1.5,NaN]]}],`+
		`"outputs":[{"name":"y","parameters":{"binary_data":true}}]}`), -1)
	f.Add([]byte(`{"inputs":[{"name":"x","datatype":"INT64","shape":[1],`+
		`"parameters":{"binary_data_size":8}}]}12345678`), 92)
	f.Add([]byte(`{"parameters":{"timeout":5},"inputs":[{"name":"s","datatype":"BYTES","shape":[2],"data":["a",`+
		`"\u00e9"]}]}`), -1)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		var r *RESTRequest
		var err error
		bounded.Input(t, b, decodedPerByte, func() { r, err = DecodeREST(b, n, Bounds{}, nil, nil) })
		if err != nil {
			return
		}
		for k := range r.Inputs {
			if err := r.Inputs[k].Validate(); err != nil {
				t.Fatalf("accepted: %v", err)
			}
		}
		body, n, err := EncodeRESTRequest(r, true)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeREST(body, n, Bounds{}, nil, nil)
		if err != nil {
			t.Fatalf("not accepted again: %v\n%q", err, body)
		}
		sameTensors(t, "again", again.Inputs, r.Inputs)
	})
}

// FuzzDecodeHTTPResponse is the client's side: no answer of a hostile server makes it panic.
func FuzzDecodeHTTPResponse(f *testing.F) {
	f.Add([]byte(`{"model_name":"m","parameters":{"accuracy":0.5},"outputs":[{"name":"y","datatype":"INT8",`+
		`"shape":[2],"data":[1,2]}]}`), -1)
	f.Add([]byte(`{"outputs":[{"name":"y","datatype":"INT8","shape":[2],"parameters":{"binary_data_size":2}}]}ab`), 87)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		var r *RESTResponse
		var err error
		bounded.Input(t, b, decodedPerByte, func() { r, err = DecodeRESTResponse(b, n) })
		if err != nil {
			return
		}
		body, n, err := EncodeREST(r, &RESTRequest{BinaryOutputs: true})
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeRESTResponse(body, n)
		if err != nil {
			t.Fatalf("not accepted again: %v\n%q", err, body)
		}
		sameTensors(t, "again", again.Outputs, r.Outputs)
	})
}

// FuzzDecodeGRPCResponse is the client's side over gRPC: no answer of a hostile server makes it panic.
func FuzzDecodeGRPCResponse(f *testing.F) {
	tensors := []tensor.Tensor{{Name: "y", DType: tensor.Int8, Shape: []int64{2}, Data: []byte{1, 2}}}
	var raw pb.ModelInferResponse
	EncodeOutputs(&raw, tensors, nil)
	typed := pb.ModelInferResponse{Outputs: []*pb.ModelInferResponse_InferOutputTensor{{
		Name: "y", Datatype: "INT8", Shape: []int64{2}, Contents: &pb.InferTensorContents{IntContents: []int32{1, 2}},
	}}}
	for _, r := range []*pb.ModelInferResponse{&raw, &typed} {
		b, err := proto.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var out []tensor.Tensor
		bounded.Input(t, b, decodedPerByte, func() {
			var r pb.ModelInferResponse
			if (Bounds{}).CheckResponse(b) != nil || proto.Unmarshal(b, &r) != nil {
				return
			}
			out, _ = DecodeOutputs(&r)
		})
		for k := range out {
			if err := out[k].Validate(); err != nil {
				t.Fatalf("accepted: %v", err)
			}
		}
	})
}
