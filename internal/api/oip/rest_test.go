package oip

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/tensor"
)

// Every trap of the REST side that a body can contain. The numbers are those of docs/protocol.md.
func TestRESTTraps(t *testing.T) {
	input := func(datatype, shape, rest string) string {
		return `{"inputs":[{"name":"x","datatype":"` + datatype + `","shape":` + shape + `,` + rest + `}]}`
	}
	for _, c := range []struct {
		name, body string
		header     int
		want       string // of the data, "" where an error is wanted
		err        string
	}{
		{
			"5 binary block", input("INT8", "[3]", `"parameters":{"binary_data_size":3}`) + "\x01\x02\x03", -2,
			"\x01\x02\x03", "",
		},
		{
			"5 block too short", input("INT8", "[3]", `"parameters":{"binary_data_size":3}`) + "\x01\x02", -2, "",
			"binary_data_size",
		},
		{
			"5 bytes left over", input("INT8", "[3]", `"parameters":{"binary_data_size":3}`) + "\x01\x02\x03\x04", -2,
			"", "1 bytes are left",
		},
		{
			"5 size against shape", input("INT16", "[3]", `"parameters":{"binary_data_size":3}`) + "\x01\x02\x03", -2,
			"", "needs 3 elements of 2 bytes",
		},
		{"5 header beyond the body", `{}`, 10, "", HeaderLength},
		{
			"5 data and binary", input("INT8", "[1]", `"data":[1],"parameters":{"binary_data_size":1}`) + "\x01", -2,
			"", "use one of them",
		},
		{
			"7 bytes are UTF-8 strings", input("BYTES", "[2]", `"data":["a","\u00e9\u0000"]`), -1,
			"\x01\x00\x00\x00a\x03\x00\x00\x00\xc3\xa9\x00", "",
		},
		{
			"7 nested equals flat", input("BYTES", "[2,1]", `"data":[["a"],["b"]]`), -1,
			"\x01\x00\x00\x00a\x01\x00\x00\x00b", "",
		},
		{"7 booleans", input("BOOL", "[3]", `"data":[true,false,1]`), -1, "\x01\x00\x01", ""},
		{"8 half precision only binary", input("FP16", "[1]", `"data":[1]`), -1, "", "binary"},
		{
			"9 int64 exact", input("INT64", "[2]", `"data":[9007199254740993,-9223372036854775808]`), -1,
			"\x01\x00\x00\x00\x00\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x80", "",
		},
		{
			"9 uint64 exact", input("UINT64", "[1]", `"data":[18446744073709551615]`), -1,
			"\xff\xff\xff\xff\xff\xff\xff\xff", "",
		},
		{
			"9 bare NaN and Infinity", input("FP32", "[3]", `"data":[NaN,Infinity,-Infinity]`), -1,
			"\x00\x00\xc0\x7f\x00\x00\x80\x7f\x00\x00\x80\xff", "",
		},
		{"9 out of range", input("INT8", "[1]", `"data":[128]`), -1, "", "INT8"},
		{"9 beyond FP32", input("FP32", "[2]", `"data":[1,1e39]`), -1, "", `data[1]: "1e39" is no FP32`},
		{"9 below FP32", input("FP32", "[1]", `"data":[-1e39]`), -1, "", `"-1e39" is no FP32`},
		{"9 beyond FP64", input("FP64", "[1]", `"data":[1e400]`), -1, "", `data[0]: "1e400" is no FP64`},
		{"9 the largest FP32", input("FP32", "[1]", `"data":[3.4028235e38]`), -1, "\xff\xff\x7f\x7f", ""},
		{"9 smaller than any FP32", input("FP32", "[1]", `"data":[1e-60]`), -1, "\x00\x00\x00\x00", ""},
		{"9 negative unsigned", input("UINT8", "[1]", `"data":[-1]`), -1, "", "UINT8"},
		{"9 fraction in an integer", input("INT32", "[1]", `"data":[1.5]`), -1, "", "INT32"},
		{"9 whole number with a point", input("INT32", "[1]", `"data":[3.0]`), -1, "\x03\x00\x00\x00", ""},
		{"9 no hexadecimal floats", input("FP32", "[1]", `"data":[0x1p4]`), -1, "", "FP32"},
		{"10 shape is no array", input("INT8", "3", `"data":[1,2,3]`), -1, "", "shape"},
		{"10 shape is missing", `{"inputs":[{"name":"x","datatype":"INT8","data":[1]}]}`, -1, "", "shape"},
		{"10 negative dimension", input("INT8", "[-1]", `"data":[1]`), -1, "", "negative"},
		{"10 overflow", input("INT8", "[16,1152921504606846978]", `"data":[1]`), -1, "", "exceed"},
		{"10 too few elements", input("INT8", "[3]", `"data":[1,2]`), -1, "", "2 elements, the shape needs 3"},
		{"10 too many elements", input("INT8", "[1]", `"data":[1,2]`), -1, "", "more than the 1"},
		{"10 zero dimension", input("INT8", "[0,4]", `"data":[]`), -1, "", ""},
		{"10 scalar", input("INT8", "[]", `"data":[7]`), -1, "\x07", ""},
		{"10 fractional dimension", input("INT8", "[1.5]", `"data":[7]`), -1, "", "shape"},
		{
			"12 classification",
			`{"inputs":[{"name":"x","datatype":"INT8","shape":[1],"data":[1]}],"outputs":[{"name":"y",` +
				`"parameters":{"classification":1.5}}]}`, -1, "", "classification",
		},
		{
			"12 timeout must be a number",
			`{"parameters":{"timeout":"soon"},"inputs":[{"name":"x","datatype":"INT8","shape":[1],"data":[1]}]}`, -1,
			"", "parameters.timeout",
		},
		{
			"12 unknown parameters are passed over",
			`{"parameters":{"sequence_id":4,"triton_x":true},"inputs":[{"name":"x","datatype":"INT8","shape":[1],` +
				`"data":[1],"extra":{"data":5}}]}`, -1, "\x01", "",
		},
		{"hostile: not JSON", `{"inputs":`, -1, "", "JSON"},
		{
			"hostile: deep nesting", input("INT8", "[1]", `"data":`+strings.Repeat("[", 100)+"1"+strings.Repeat("]",
				100)), -1, "", "deep",
		},
		{"hostile: unknown type", input("FLOAT", "[1]", `"data":[1]`), -1, "", "datatype"},
		{
			"hostile: same name twice",
			`{"inputs":[{"name":"x","datatype":"INT8","shape":[1],"data":[1]},{"name":"x","datatype":"INT8",` +
				`"shape":[1],"data":[1]}]}`, -1, "", "name of inputs[0]",
		},
		{"hostile: no inputs", `{"inputs":[]}`, -1, "", "inputs"},
		{"hostile: no name", `{"inputs":[{"datatype":"INT8","shape":[1],"data":[1]}]}`, -1, "", "no name"},
		{"hostile: no data", input("INT8", "[1]", `"parameters":{}`), -1, "", "neither"},
		{"hostile: trailing comma", input("INT8", "[1]", `"data":[1,]`), -1, "", "comma"},
		{"hostile: missing comma", input("INT8", "[2]", `"data":[1 2]`), -1, "", "comma"},
		{"hostile: huge shape, small body", input("INT8", "[2000000000]", `"data":[1]`), -1, "", "needs 2000000000"},
		{
			"a key called data elsewhere",
			`{"data":3,"inputs":[{"name":"data","datatype":"INT8","shape":[1],"data":[1]}]}`, -1, "\x01", "",
		},
	} {
		header := c.header
		if header == -2 {
			header = strings.LastIndex(c.body, "}") + 1
		}
		r, err := DecodeREST([]byte(c.body), header, Bounds{}, nil, nil)
		if c.err != "" {
			var e *Error
			if err == nil || !strings.Contains(err.Error(), c.err) || !errors.As(err, &e) {
				t.Errorf("%s: error %v, want one that says %q", c.name, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := string(r.Inputs[0].Data); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestRawRequests(t *testing.T) {
	for _, c := range []struct {
		name    string
		size    int
		batched bool
		dtype   tensor.DType
		shape   []int64
		want    []int64 // nil for an error
	}{
		{"one item, a variable dimension", 24, true, tensor.FP32, []int64{-1, -1}, []int64{1, 6}},
		{"one item, all fixed", 8, true, tensor.FP32, []int64{-1, 2}, []int64{1, 2}},
		{"a wrong size", 7, true, tensor.FP32, []int64{-1, 2}, nil},
		{"two items", 16, true, tensor.FP32, []int64{-1, 2}, nil},
		{"two variable dimensions", 8, true, tensor.FP32, []int64{-1, -1, -1}, nil},
		{"no batch: the first dimension is like any other", 24, false, tensor.FP32, []int64{-1}, []int64{6}},
		{"no batch, in the middle", 24, false, tensor.FP32, []int64{2, -1}, []int64{2, 3}},
		{"no batch, a rest", 20, false, tensor.FP32, []int64{2, -1}, nil},
		{"no batch, two variable dimensions", 24, false, tensor.FP32, []int64{-1, -1}, nil},
		{"no batch, nothing determines the dimension", 0, false, tensor.FP32, []int64{-1, 0}, nil},
		{"no batch, no elements", 0, false, tensor.FP32, []int64{-1, 3}, []int64{0, 3}},
		{"no shape", 4, false, tensor.FP32, nil, nil},
		{"BYTES", 5, true, tensor.Bytes, []int64{-1, 1}, []int64{1, 1}},
		{"BYTES without a batch", 5, false, tensor.Bytes, []int64{1}, []int64{1}},
		{"BYTES of any number", 5, false, tensor.Bytes, []int64{-1}, nil},
		{"BYTES of two dimensions", 5, false, tensor.Bytes, []int64{1, 1}, nil},
		{"BYTES of one dimension, the batch", 5, true, tensor.Bytes, []int64{-1}, nil},
	} {
		body := bytes.Repeat([]byte("x"), c.size)
		r, err := DecodeREST(body, 0, Bounds{}, func() (tensor.Spec, bool, error) {
			return tensor.Spec{Name: "x", DType: c.dtype, Shape: c.shape}, c.batched, nil
		}, nil)
		switch {
		case c.want == nil && err == nil:
			t.Errorf("%s: was taken as %v", c.name, r.Inputs[0].Shape)
		case c.want != nil && (err != nil || !slices.Equal(r.Inputs[0].Shape, c.want) || !r.BinaryOutputs):
			t.Errorf("%s: %+v, %v", c.name, r, err)
		case c.want != nil && !bytes.HasSuffix(r.Inputs[0].Data, body):
			t.Errorf("%s: %q", c.name, r.Inputs[0].Data)
		}
	}
}

// randomTensors draws tensors of every type.
func randomTensors(rng *rand.Rand) []tensor.Tensor {
	var out []tensor.Tensor
	for d := tensor.Bool; d <= tensor.Bytes; d++ {
		t := tensor.Tensor{Name: "t" + d.String(), DType: d, Shape: []int64{1 + rng.Int64N(3), rng.Int64N(4)}}
		for range t.Shape[0] * t.Shape[1] {
			switch d {
			case tensor.Bytes:
				t.Data = tensor.AppendBytes(t.Data, []byte(strings.Repeat("é\"\\\x00", rng.IntN(3))))
			case tensor.Bool:
				t.Data = append(t.Data, byte(rng.IntN(2)))
			case tensor.FP32:
				t.Data = append(t.Data, 0, byte(rng.IntN(256)), byte(rng.IntN(128)), byte(rng.IntN(256)))
			default:
				for range d.Size() {
					t.Data = append(t.Data, byte(rng.IntN(256)))
				}
				if d == tensor.FP64 && t.Data[len(t.Data)-1]&0x7f == 0x7f {
					t.Data[len(t.Data)-1] = 0x40 // one NaN stands for all of them
				}
			}
		}
		out = append(out, t)
	}
	return out
}

func sameTensors(t *testing.T, what string, got, want []tensor.Tensor) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d tensors, want %d", what, len(got), len(want))
	}
	for k := range want {
		if got[k].Name != want[k].Name || got[k].DType != want[k].DType ||
			!reflect.DeepEqual(got[k].Shape, want[k].Shape) || !bytes.Equal(got[k].Data, want[k].Data) {
			t.Fatalf("%s: %+v, want %+v", what, got[k], want[k])
		}
	}
}

// Every type is unchanged after encoding and decoding in every form: JSON, binary blocks, raw and typed messages.
func TestRoundTrips(t *testing.T) {
	for seed := uint64(1); seed <= 200; seed++ {
		rng := rand.New(rand.NewPCG(seed, 6))
		all := randomTensors(rng)
		var plain []tensor.Tensor // what JSON and typed contents can say
		for _, x := range all {
			if x.DType != tensor.FP16 && x.DType != tensor.BF16 {
				plain = append(plain, x)
			}
		}
		for _, binary := range []bool{false, true} {
			in := plain
			if binary {
				in = all
			}
			want := &RESTRequest{
				ID: "7", Inputs: in, BinaryOutputs: binary, Params: Params{
					Timeout: 5e6, Priority: 2, MinAccuracy: 0.5, Sequence: `a "b"`, SequenceStart: binary,
					SequenceEnd: !binary, StageTimings: true,
				}, Outputs: []RequestedOutput{{Name: "y"}},
			}
			body, n, err := EncodeRESTRequest(want, binary)
			if err != nil {
				t.Fatal(err)
			}
			got, err := DecodeREST(body, n, Bounds{}, nil, nil)
			if err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, body)
			}
			sameTensors(t, "request", got.Inputs, in)
			if got.ID != "7" || got.Params != want.Params || got.BinaryOutputs != binary || len(got.Outputs) != 1 {
				t.Fatalf("seed %d: %+v", seed, got)
			}
			answer := &RESTResponse{
				ModelName: "m", ModelVersion: "1", ID: "7", Outputs: in, Params: []Param{
					{"accuracy", 0.25}, {"batch_size", int64(4)}, {"variant", "v"},
				},
			}
			body, n, err = EncodeREST(answer, &RESTRequest{BinaryOutputs: binary})
			if err != nil {
				t.Fatal(err)
			}
			back, err := DecodeRESTResponse(body, n)
			if err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, body)
			}
			sameTensors(t, "answer", back.Outputs, in)
			if !reflect.DeepEqual(back.Params, answer.Params) || back.ModelName != "m" || back.ModelVersion != "1" ||
				back.ID != "7" {
				t.Fatalf("seed %d: %+v", seed, back)
			}
		}
		request := EncodeRequest("m", "", "", all, nil)
		got, err := DecodeRequest(request, nil)
		if err != nil || len(request.RawInputContents) != len(all) {
			t.Fatal(err)
		}
		sameTensors(t, "raw message", got, all)
		for _, raw := range []bool{false, true} {
			out := &pb.ModelInferResponse{}
			if raw {
				EncodeOutputs(out, plain, nil)
			} else {
				encodeTyped(out, plain)
			}
			if (len(out.RawOutputContents) > 0) != raw {
				t.Fatalf("raw %v: %d raw contents", raw, len(out.RawOutputContents))
			}
			back, err := DecodeOutputs(out)
			if err != nil {
				t.Fatal(err)
			}
			sameTensors(t, "message", back, plain)
		}
	}
}

func TestOutputsInJSON(t *testing.T) {
	bad := []tensor.Tensor{
		{Name: "y", DType: tensor.Bytes, Shape: []int64{1}, Data: tensor.AppendBytes(nil, []byte{0xff})},
	}
	if _, _, err := EncodeREST(&RESTResponse{Outputs: bad}, &RESTRequest{}); err == nil ||
		!strings.Contains(err.Error(), "binary") {
		t.Errorf("not UTF-8: %v", err)
	}
	no := false
	body, n, err := EncodeREST(&RESTResponse{
		Outputs: []tensor.Tensor{{Name: "y", DType: tensor.Int8, Shape: []int64{1}, Data: []byte{3}}},
	},
		&RESTRequest{BinaryOutputs: true, Outputs: []RequestedOutput{{Name: "y", Binary: &no}}})
	if err != nil || n != NoBinary || !bytes.Contains(body, []byte(`"data":[3]`)) {
		t.Errorf("binary_data false must win over binary_data_output true: %s, %d, %v", body, n, err)
	}
	if got := string(ErrorBody("a \"b\"")); got != `{"error":"a \"b\""}` {
		t.Error(got)
	}
}
