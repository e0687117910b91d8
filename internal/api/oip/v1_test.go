package oip

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/tensor"
)

var v1Specs = []tensor.Spec{
	{Name: "tag", DType: tensor.Bytes, Shape: []int64{-1}},
	{Name: "signal", DType: tensor.Int64, Shape: []int64{-1, 5}},
	{Name: "sensor", DType: tensor.FP32, Shape: []int64{-1, 2, 2}},
}

func lone(d tensor.DType, shape ...int64) []tensor.Spec {
	return []tensor.Spec{{Name: "x", DType: d, Shape: shape}}
}

// Requests of TensorFlow Serving's and KServe's documents, and other forms that clients send, each with what it means
// in the form of columns.
func TestDecodeV1(t *testing.T) {
	const columns = `{"inputs":{"tag":["foo","bar"],"signal":[[1,2,3,4,5],[3,4,1,2,5]],` +
		`"sensor":[[[1,2],[3,4]],[[4,5],[6,8]]]}}`
	for _, c := range []struct {
		inputs     []tensor.Spec
		body, want string
	}{
		{v1Specs, `{"instances": [{"tag": "foo", "signal": [1, 2, 3, 4, 5], "sensor": [[1, 2], [3, 4]]},
			{"sensor": [[4, 5], [6, 8]], "tag": "bar", "signal": [3, 4, 1, 2, 5]}]}`, columns},
		{v1Specs, columns, columns},
		{lone(tensor.Bytes, -1), `{"instances": ["foo", "bar", "b\u0061z"]}`, `{"inputs":{"x":["foo","bar","baz"]}}`},
		{lone(tensor.FP32, -1, 1, 2), `{"instances": [ [[1, 2]], [[3, 4]] ]}`, `{"inputs":{"x":[[[1,2]],[[3,4]]]}}`},
		{
			lone(tensor.FP32, -1), `{"signature_name":"serving_default","instances":[1.0,-2.5e0,NaN,-Infinity]}`,
			`{"inputs":{"x":[1,-2.5,NaN,-Infinity]}}`,
		},
		{lone(tensor.FP32, -1, 1), `{"instances":[1,2]}`, `{"inputs":{"x":[[1],[2]]}}`},
		{lone(tensor.FP32, -1, 1), `{"instances":[{"x":1},{"x":2}]}`, `{"inputs":{"x":[[1],[2]]}}`},
		{lone(tensor.FP32, -1, 1), `{"instances":[{"\u0078":[1]}]}`, `{"inputs":{"x":[[1]]}}`},
		{lone(tensor.Bool, -1), `{"inputs":[true,0],"more":{"a":[1,"}]"]},"n":null}`, `{"inputs":{"x":[true,false]}}`},
		{lone(tensor.FP64), `{"inputs":7}`, `{"inputs":{"x":7}}`},
		{lone(tensor.Int64, -1), `{"inputs":{"x":[9007199254740993]}}`, `{"inputs":{"x":[9007199254740993]}}`},
		{lone(tensor.FP32, -1, -1), `{"inputs":[[],[]]}`, `{"inputs":{"x":[[],[]]}}`},
		{
			lone(tensor.Bytes, -1), `{"instances":[{"b64":"AP/+"},"a"]}`,
			`{"inputs":{"x":[{"b64":"AP/+"},{"b64":"YQ=="}]}}`,
		},
		{lone(tensor.Bytes, -1), `{"instances":[{"x":{"b64":"AP\/+"}}]}`, `{"inputs":{"x":[{"b64":"AP/+"}]}}`},
		{lone(tensor.Bytes), `{"inputs":{"b64":"AP/+"}}`, `{"inputs":{"x":{"b64":"AP/+"}}}`},
		{
			[]tensor.Spec{{Name: "b64", DType: tensor.FP32, Shape: []int64{-1}}}, `{"instances":[{"b64":1}]}`,
			`{"inputs":{"b64":[1]}}`,
		},
		{lone(tensor.FP32, -1), `{"inputs":{"x":[1],"scale":3}}`, `{"inputs":{"x":[1],"scale":3}}`},
	} {
		optional := []tensor.Spec{{Name: "scale", DType: tensor.FP32}}
		got, err := DecodeV1([]byte(c.body), c.inputs, optional, Bounds{})
		if err != nil {
			t.Errorf("%s: %v", c.body, err)
			continue
		}
		want, err := DecodeV1([]byte(c.want), c.inputs, optional, Bounds{})
		if err != nil {
			t.Fatalf("%s: %v", c.want, err)
		}
		if got.Rows != strings.Contains(c.body, "instances") {
			t.Errorf("%s: rows %v", c.body, got.Rows)
		}
		if a, b := v1Columnwise(t, got.Inputs), v1Columnwise(t, want.Inputs); a != b || a != c.want {
			t.Errorf("%s\n got %s\nwant %s, %s", c.body, a, b, c.want)
		}
	}
}

// v1Columnwise writes tensors, each with its name, in the order of v1Specs or as they are.
func v1Columnwise(t *testing.T, list []tensor.Tensor) string {
	t.Helper()
	var sorted []tensor.Tensor
	for _, s := range v1Specs {
		for k := range list {
			if list[k].Name == s.Name {
				sorted = append(sorted, list[k])
			}
		}
	}
	if sorted == nil {
		sorted = list
	}
	out := make([]v1Output, len(sorted))
	for k := range sorted {
		if err := sorted[k].Validate(); err != nil {
			t.Errorf("%v", err)
		}
		out[k] = v1Output{sorted[k], sorted[k].DType == tensor.Bytes && !isText(sorted[k].Data)}
	}
	if len(out) > 1 {
		return `{"inputs":` + string(appendOutputs(nil, out, 0)) + `}`
	}
	return `{"inputs":{"` + out[0].Name + `":` + string(appendOutputs(nil, out, 0)) + `}}`
}

func TestDecodeV1Parameters(t *testing.T) {
	got, err := DecodeV1([]byte(`{"instances":[1],"parameters":{"timeout":250000,"priority":2,"other":"x"}}`),
		lone(tensor.FP32, -1), nil, Bounds{})
	if err != nil || got.Params.Timeout.Milliseconds() != 250 || got.Params.Priority != 2 {
		t.Errorf("%+v, %v", got, err)
	}
}

// What is wrong is refused with the place and what is wanted there.
func TestDecodeV1Refuses(t *testing.T) {
	two := []tensor.Spec{{Name: "a", DType: tensor.FP32}, {Name: "b", DType: tensor.FP32}}
	for _, c := range []struct {
		inputs     []tensor.Spec
		body, want string
		code       Code
	}{
		{two, ``, "ends too early", Invalid},
		{two, `[1]`, "'[' at byte 0", Invalid},
		{two, `{"instances":[{"a":1,"b":2}]`, "ends too early", Invalid},
		{two, `{"instances":[{"a":1,"b":2}]} x`, "'x' at byte 30", Invalid},
		{two, `{"id":nonsense,"inputs":{}}`, "the JSON that is wanted", Invalid},
		{two, `{}`, `neither "instances" nor "inputs"`, Invalid},
		{two, `{"inputs":{}}`, ErrNoInputs.Error(), Invalid},
		{two, `{"instances":[{"a":1,"b":2}],"inputs":{"a":[1]}}`, "is not alone", Invalid},
		{two, `{"instances":{"a":1}}`, "instances: want a list", Invalid},
		{two, `{"instances":[]}`, "instances: is empty", Invalid},
		{two, `{"instances":[1,2]}`, `names no input, the model takes "a", "b"`, Invalid},
		{two, `{"instances":[{"c":1}]}`, `"c" is no input of the model, which takes "a", "b"`, Invalid},
		{two, `{"instances":[{"a":1,"b":2},{"a":1}]}`, `instances[1]: each row has each input once, and "b"`, Invalid},
		{two, `{"instances":[{"a":1},{"a":1,"b":2}]}`, `instances[1]: each row`, Invalid},
		{two, `{"instances":[{"a":1,"a":2,"b":2}]}`, `instances[0]: each row`, Invalid},
		{two, `{"instances":[{"a":1,"b":2},3]}`, "'3' at byte 28", Invalid},
		{two, `{"inputs":{"a":1,"a":2}}`, `has "a" twice`, Invalid},
		{lone(tensor.FP32), `{"instances":[[1,2],[3]]}`, `instances[1] "x": has lists of different lengths`, Invalid},
		{lone(tensor.FP32), `{"instances":[[1],3]}`, `instances[1] "x": has lists of different`, Invalid},
		{lone(tensor.FP32), `{"instances":[1,[3]]}`, `instances[1] "x": has lists of different`, Invalid},
		{lone(tensor.FP32), `{"inputs":[[],[[]]]}`, `inputs "x": has lists of different`, Invalid},
		{lone(tensor.FP32), `{"instances":[{"x":[1]},{"x":[[1]]}]}`, `instances[1] "x": has lists of diff`, Invalid},
		{lone(tensor.FP32), `{"instances":[1e39]}`, `instances[0] "x": "1e39" is no FP32`, Invalid},
		{lone(tensor.Uint8), `{"instances":[0,256]}`, `instances[1] "x": "256" is no UINT8`, Invalid},
		{lone(tensor.FP32), `{"instances":[1,null]}`, `"null" is no FP32`, Invalid},
		{lone(tensor.FP32), `{"instances":[1,]}`, `"" is no FP32`, Invalid},
		{lone(tensor.FP32), `{"instances":[1 2]}`, "'2' at byte 16", Invalid},
		{lone(tensor.FP32), `{"instances":["1"]}`, `is no FP32`, Invalid},
		{lone(tensor.Bytes), `{"instances":[1]}`, "must be a string", Invalid},
		{lone(tensor.FP32), `{"inputs":[{"b64":"AA=="}]}`, "holds an object, want FP32", Invalid},
		{lone(tensor.Bytes), `{"inputs":[{"b64":"??"}]}`, "is no base64", Invalid},
		{lone(tensor.Bytes), `{"inputs":[{"b64":"AA==","b64":"AA=="}]}`, `want a text or {"b64"`, Invalid},
		{lone(tensor.Bytes), `{"inputs":[{}]}`, `want a text or {"b64"`, Invalid},
		{lone(tensor.FP16), `{"instances":[1]}`, "FP16, which has no JSON form: send it as binary data", Invalid},
		{lone(tensor.FP32), `{"signature_name":"other","instances":[1]}`, "signature_name", Invalid},
		{lone(tensor.FP32), `{"parameters":{"timeout":-1},"instances":[1]}`, "parameters.timeout", Invalid},
		{lone(tensor.FP32), `{"parameters":[],"instances":[1]}`, "parameters: want an object", Invalid},
		{lone(tensor.FP32), `{"parameters":{"sequence_end":true},"instances":[1]}`, "sequence_id", Invalid},
		{lone(tensor.FP32), `{"instances":` + strings.Repeat("[", 40) + `1`, "nested more than", Invalid},
		{lone(tensor.FP32), `{"instances":[` + strings.Repeat("1,", 20) + `1]}`, "server.limits.elements", TooLarge},
		{lone(tensor.FP32), `{"x":"` + strings.Repeat("a", 200) + `","inputs":1}`, "server.limits.json", TooLarge},
		{lone(tensor.FP32), `{"\u0061` + strings.Repeat("a", 200) + `":1,"inputs":1}`, "server.limits.json", TooLarge},
	} {
		_, err := DecodeV1([]byte(c.body), c.inputs, nil, Bounds{Elements: 20, Head: 100})
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) || e.Code != c.code {
			t.Errorf("%s: %v, want %q with code %d", c.body, err, c.want, c.code)
		}
	}
}

func TestAppendV1(t *testing.T) {
	numbers := tensor.Tensor{Name: "y", DType: tensor.Uint8, Shape: []int64{2, 2}, Data: []byte{1, 2, 3, 4}}
	texts := tensor.Tensor{Name: "s", DType: tensor.Bytes, Shape: []int64{2}}
	texts.Data = tensor.AppendBytes(tensor.AppendBytes(nil, []byte("a")), []byte(`"`))
	raw := texts
	raw.Name = "image_bytes"
	odd := tensor.Tensor{Name: "o", DType: tensor.Bytes, Data: tensor.AppendBytes(nil, []byte{0, 0xff, 0xfe})}
	for _, c := range []struct {
		outputs []tensor.Tensor
		rows    bool
		want    string
	}{
		{[]tensor.Tensor{numbers}, true, `{"predictions":[[1,2],[3,4]]}`},
		{[]tensor.Tensor{numbers}, false, `{"outputs":[[1,2],[3,4]]}`},
		{[]tensor.Tensor{numbers, texts}, true, `{"predictions":[{"y":[1,2],"s":"a"},{"y":[3,4],"s":"\""}]}`},
		{[]tensor.Tensor{numbers, texts}, false, `{"outputs":{"y":[[1,2],[3,4]],"s":["a","\""]}}`},
		{[]tensor.Tensor{raw}, true, `{"predictions":[{"b64":"YQ=="},{"b64":"Ig=="}]}`},
		{[]tensor.Tensor{odd}, false, `{"outputs":{"b64":"AP/+"}}`},
		{[]tensor.Tensor{{Name: "z", DType: tensor.FP32, Shape: []int64{0, 2}}}, true, `{"predictions":[]}`},
		{[]tensor.Tensor{{Name: "z", DType: tensor.FP32, Shape: []int64{2, 0}}}, false, `{"outputs":[[],[]]}`},
	} {
		got, err := AppendV1(nil, c.outputs, c.rows)
		if err != nil || string(got) != c.want || !json.Valid(got) {
			t.Errorf("%v\n got %s\nwant %s", err, got, c.want)
		}
	}
	if _, err := AppendV1(nil, []tensor.Tensor{numbers, odd}, true); err == nil ||
		!strings.Contains(err.Error(), `output "o" has shape []`) {
		t.Errorf("an output without rows: %v", err)
	}
}

// Any bytes are refused, or become tensors that are whole, mean the same when they are written again, and hold what
// encoding/json reads.
func FuzzDecodeV1(f *testing.F) {
	for _, s := range []string{
		`{"instances":[{"tag":"a","signal":[1,2],"sensor":[[1,NaN]]},{"tag":{"b64":"AA=="},"signal":[3],"sensor":[]}]}`,
		`{"inputs":{"tag":["a"],"signal":[[1,2]],"sensor":[[]]},"parameters":{"timeout":1},"signature_name":""}`,
		`{"instances":[1,2,3],"x":[{"a":"}"}]}`, `{"inputs":[[[1]]]}`, `{"\u0069nputs":{"b64":"AA=="}}`,
	} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, body []byte, one bool) {
		inputs := v1Specs
		if one {
			inputs = inputs[1:2]
		}
		got, err := DecodeV1(body, inputs, nil, Bounds{Elements: 1000})
		if err != nil {
			return
		}
		list := make([]v1Output, len(got.Inputs))
		for k := range got.Inputs {
			if err := got.Inputs[k].Validate(); err != nil {
				t.Fatalf("%q: %v", body, err)
			}
			list[k] = v1Output{got.Inputs[k], got.Inputs[k].DType == tensor.Bytes}
		}
		text := []byte(`{"inputs":{`)
		for k := range list {
			if k > 0 {
				text = append(text, ',')
			}
			text = append(appendString(text, list[k].Name), ':')
			text = appendOutputs(text, list[k:k+1], 0)
		}
		again, err := DecodeV1(append(text, "}}"...), inputs, nil, Bounds{Elements: 1000})
		if err != nil {
			t.Fatalf("%q became %s: %v", body, text, err)
		}
		for k := range again.Inputs {
			a, b := &got.Inputs[k], &again.Inputs[k]
			if a.Name != b.Name || string(a.Data) != string(b.Data) || !reflect.DeepEqual(a.Shape, b.Shape) {
				t.Errorf("%q became %s: %v, %v", body, text, a, b)
			}
		}
	})
}

func BenchmarkDecodeV1(b *testing.B) {
	row := `{"x":[` + strings.Repeat("0.125,", 99) + `1]}`
	for _, c := range []struct{ name, body string }{
		{"named rows", `{"instances":[` + strings.Repeat(row+",", 31) + row + `]}`},
		{"rows", `{"instances":[` + strings.Repeat(row[5:len(row)-1]+",", 31) + row[5:len(row)-1] + `]}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(c.body)))
			for range b.N {
				if _, err := DecodeV1([]byte(c.body), lone(tensor.FP32, -1, 100), nil, Bounds{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	v2 := `{"inputs":[{"name":"x","datatype":"FP32","shape":[32,100],"data":[` + strings.Repeat("0.125,", 3199) +
		`1]}]}`
	b.Run("v2", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(v2)))
		for range b.N {
			if _, err := DecodeREST([]byte(v2), NoBinary, Bounds{}, nil, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}
