package oip

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/bounded"
)

// decodedPerByte bounds what a decoder allocates for each byte of a message: a string with an escape takes the most.
const decodedPerByte = 128

// hostile is the size of messages that unfold when they are decoded.
const hostile = 18 << 20

// repeated is a JSON body of many equal entries.
func repeated(before, entry, after string) []byte {
	return []byte(before + strings.TrimSuffix(strings.Repeat(entry, (hostile-len(before))/len(entry)), ",") + after)
}

// Entries are counted before anything is made of them: a body of 16 MiB that would take gigabytes is refused, and
// little is allocated.
func TestHostileHTTPBodiesAllocateLittle(t *testing.T) {
	tensor := `{"name":"x","datatype":"FP64","shape":[1],"data":[1]}`
	for _, x := range []struct{ name, before, entry, after, key string }{
		{"outputs", `{"inputs":[` + tensor + `],"outputs":[`, `{},`, `]}`, "server.limits.tensors"},
		{"null inputs", `{"inputs":[`, `null,`, `]}`, "server.limits.tensors"},
		{"inputs under an escaped name", `{"\u0069nputs":[`, `{},`, `]}`, "server.limits.tensors"},
		{"inputs in capitals", `{"INPUTS":[`, `{},`, `]}`, "server.limits.tensors"},
		{"inputs given again and again", `{"inputs":[` + tensor + `]`, `,"inputs":[{}]`, `}`, "server.limits.json"},
		{"dimensions", `{"inputs":[{"name":"x","datatype":"FP64","shape":[`, `1,`, `],"data":[1]}]}`, "dimensions"},
		{"data of more elements", `{"inputs":[{"name":"x","datatype":"FP64","shape":[9000000],"data":[`, `1,`, `]}]}`,
			"server.limits.elements"},
		{"data of blanks", `{"inputs":[{"name":"x","datatype":"FP64","shape":[8000000],"data":[`, ` `, `]}]}`, "shape"},
		{"blanks", `{`, ` `, `}`, "server.limits.json"},
		{"a long name", `{"id":"`, `a`, `"}`, "server.limits.json"},
	} {
		t.Run(x.name, func(t *testing.T) {
			refusedHTTP(t, repeated(x.before, x.entry, x.after), x.key)
		})
	}
	var many strings.Builder
	for k := range hostile / 16 {
		fmt.Fprintf(&many, `"%08x":1,`, k)
	}
	list := strings.TrimSuffix(many.String(), ",")
	t.Run("parameters", func(t *testing.T) {
		refusedHTTP(t, []byte(`{"parameters":{`+list+`}}`), "server.limits.parameters")
	})
	t.Run("parameters of a tensor", func(t *testing.T) {
		refusedHTTP(t, []byte(`{"inputs":[{"parameters":{`+list+`}}]}`), "server.limits.parameters")
	})
}

func refusedHTTP(t *testing.T, body []byte, key string) {
	t.Helper()
	for what, decode := range map[string]func() error{
		"request":  func() error { _, err := DecodeREST(body, NoBinary, Bounds{}, nil, nil); return err },
		"response": func() error { _, err := DecodeRESTResponse(body, NoBinary); return err },
	} {
		var err error
		bounded.Run(t, 2<<20, func() { err = decode() })
		var known *Error
		inputs := what == "request" // an answer has no inputs, so that their shapes are not looked at
		if inputs && (!errors.As(err, &known) || known.Code != Invalid && known.Code != TooLarge ||
			!strings.Contains(err.Error(), key)) {
			t.Errorf("%s: error %v, want one that names %s", what, err, key)
		}
	}
}

// Bounds can be raised where a user needs more.
func TestRaisedBoundsTakeMore(t *testing.T) {
	var inputs []string
	for k := range 300 {
		inputs = append(inputs, fmt.Sprintf(`{"name":"x%d","datatype":"INT8","shape":[1],"data":[1]}`, k))
	}
	body := []byte(`{"inputs":[` + strings.Join(inputs, ",") + `]}`)
	if _, err := DecodeREST(body, NoBinary, Bounds{}, nil, nil); err == nil {
		t.Error("300 inputs were taken")
	}
	r, err := DecodeREST(body, NoBinary, Bounds{Tensors: 300}, nil, nil)
	if err != nil || len(r.Inputs) != 300 {
		t.Errorf("%v: want 300 inputs", err)
	}
	if _, err := DecodeREST(body, NoBinary, Bounds{Tensors: 300, Head: 1000}, nil, nil); err == nil {
		t.Error("a head of more than 1000 bytes was taken")
	}
	if _, err := DecodeREST(body, NoBinary, Bounds{Tensors: 300, Elements: 299}, nil, nil); err == nil {
		t.Error("more than 299 elements were taken")
	}
}

// Entries of a gRPC message are counted in its wire form.
func TestHostileGRPCMessagesAllocateLittle(t *testing.T) {
	entry := func(number protowire.Number, b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), b)
	}
	times := func(b []byte) (out []byte) {
		for len(out) < hostile {
			out = append(out, b...)
		}
		return out
	}
	in := func(b []byte) []byte { return entry(5, b) }
	contents := func(b []byte) []byte { return in(entry(5, b)) }
	var parameters []byte
	for k := range hostile / 16 {
		parameters = append(parameters, entry(4, entry(1, fmt.Appendf(nil, "%08x", k)))...)
	}
	for _, x := range []struct {
		name, key string
		wire      []byte
	}{
		{"inputs", "server.limits.tensors", times(in(nil))},
		{"outputs asked for", "server.limits.tensors", times(entry(6, nil))},
		{"raw contents", "server.limits.tensors", times(entry(7, nil))},
		{"parameters", "server.limits.parameters", parameters},
		{"parameters of an input", "server.limits.parameters", in(parameters)},
		{"dimensions, packed", "dimensions", in(entry(3, make([]byte, hostile)))},
		{"dimensions, one by one", "dimensions", in(times([]byte{3 << 3, 1}))},
		{"bools", "server.limits.elements", contents(entry(1, make([]byte, hostile)))},
		{"whole numbers", "server.limits.elements", contents(entry(3, make([]byte, hostile)))},
		{"whole numbers, one by one", "server.limits.elements", contents(times([]byte{3 << 3, 1, 3 << 3, 1}))},
		{"strings", "server.limits.elements", contents(append(times(entry(8, nil)), times(entry(8, nil))...))},
		{"contents given again and again", "server.limits.elements",
			in(times(entry(5, entry(3, make([]byte, 1<<20)))))},
	} {
		t.Run(x.name, func(t *testing.T) {
			for name, check := range map[string]func([]byte) error{
				"request": Bounds{Elements: 4 << 20}.CheckRequest, "response": Bounds{Elements: 4 << 20}.CheckResponse,
			} {
				if name == "response" && x.name == "outputs asked for" {
					continue // raw contents there
				}
				var err error
				bounded.Run(t, 1<<20, func() { err = check(x.wire) })
				if name == "response" && x.name == "raw contents" {
					continue // an unknown field there
				}
				if err == nil || !strings.Contains(err.Error(), x.key) {
					t.Errorf("%s: error %v, want one that names %s", name, err, x.key)
				}
			}
		})
	}
	good, err := proto.Marshal(&pb.ModelInferRequest{
		ModelName: "m", Parameters: map[string]*pb.InferParameter{"timeout": Int(1)},
		Inputs: []*pb.ModelInferRequest_InferInputTensor{
			{Name: "x", Datatype: "INT32", Shape: []int64{2, 1}, Contents: &pb.InferTensorContents{
				IntContents: []int32{1, -2},
			}},
		},
		Outputs: []*pb.ModelInferRequest_InferRequestedOutputTensor{{Name: "y"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := (Bounds{Tensors: 1, Parameters: 1, Elements: 2}).CheckRequest(good); err != nil {
		t.Errorf("a message within its bounds: %v", err)
	}
	if err := (Bounds{Elements: 1}).CheckRequest(good); err == nil {
		t.Error("two elements where one is allowed")
	}
	if err := (Bounds{}).CheckRequest([]byte{0xff}); err == nil {
		t.Error("a broken message was taken")
	}
}

// Unpacked contents take their size and no more: BOOL elements took eight bytes each.
func TestTypedContentsAllocateTheirSize(t *testing.T) {
	c := &pb.InferTensorContents{BoolContents: make([]bool, hostile)}
	r := &pb.ModelInferRequest{Inputs: []*pb.ModelInferRequest_InferInputTensor{
		{Name: "x", Datatype: "BOOL", Shape: []int64{hostile}, Contents: c},
	}}
	bounded.Run(t, hostile, func() {
		if _, err := DecodeRequest(r, nil); err != nil {
			t.Error(err)
		}
	})
}
