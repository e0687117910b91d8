package oip

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/tensor"
)

// Keys of a generate request are inputs by name; the rest are parameters.
func TestGenerateBody(t *testing.T) {
	inputs := []tensor.Spec{
		{Name: "text", DType: tensor.Bytes, Shape: []int64{-1, 1}},
		{Name: "x", DType: tensor.FP32, Shape: []int64{-1, 2}},
		{Name: "free", DType: tensor.Int64, Shape: []int64{-1, -1, -1}},
	}
	for _, c := range []struct{ body, want string }{
		{`{"text":"hello","id":"7","temperature":0.5,"parameters":{"timeout":5}}`,
			`{"id":"7","parameters":{"temperature":0.5,"timeout":5},"inputs":[` +
				`{"name":"text","datatype":"BYTES","shape":[1,1],"data":["hello"]}]}`},
		{`{"x":[1,2]}`, `{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[1,2]}]}`},
		{`{"x":[[1,2],[3,4]]}`, `{"inputs":[{"name":"x","datatype":"FP32","shape":[2,2],"data":[[1,2],[3,4]]}]}`},
		{`{"free":[[1,2,3],[4,5,6]]}`,
			`{"inputs":[{"name":"free","datatype":"INT64","shape":[1,2,3],"data":[[1,2,3],[4,5,6]]}]}`},
	} {
		got, err := GenerateBody([]byte(c.body), inputs, true, Bounds{})
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n got %s\nwant %s", c.body, err, got, c.want)
		}
	}
	for body, want := range map[string]string{
		`[1]`: "array", `{"x":[1,2,3]}`: "has 3 elements", `{"x":{"a":1}}`: "want numbers",
		`{"x":null}`: "want numbers",
		`{"id":5}`:   "want a text", `{"parameters":5}`: "want an object",
		`{"x":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`: "dimensions",
	} {
		if got, err := GenerateBody([]byte(body), inputs, true, Bounds{}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s %v, want an error with %q", body, got, err, want)
		}
	}
	if _, err := GenerateBody([]byte(`{"free":[1,2,3]}`), inputs, true, Bounds{Elements: 2}); err == nil {
		t.Error("more elements than the bounds allow are taken")
	}
}

// An answer has its outputs by name, one element as a value.
func TestGenerateAnswer(t *testing.T) {
	got, err := GenerateAnswer(&RESTResponse{
		ModelName: "m", ModelVersion: "3", ID: "7", Params: []Param{{"variant", "v"}},
		Outputs: []tensor.Tensor{
			{Name: "text", DType: tensor.Bytes, Shape: []int64{1, 1}, Data: tensor.AppendBytes(nil, []byte("a\"b"))},
			{Name: "id", DType: tensor.Uint8, Shape: []int64{1, 2}, Data: []byte{1, 2}},
		},
	})
	want := `{"model_name":"m","model_version":"3","variant":"v","text":"a\"b","id":[1,2]}`
	if err != nil || string(got) != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
}

// What GenerateBody makes of any bytes is JSON that the decoder of requests can be given.
func FuzzGenerateBody(f *testing.F) {
	f.Add([]byte(`{"text":"hello","x":[[1,2],[3,4]],"id":"7","parameters":{"a":1}}`))
	f.Add([]byte(`{"x":[[],[1e400]],"free":[[[]]]}`))
	inputs := []tensor.Spec{
		{Name: "text", DType: tensor.Bytes, Shape: []int64{-1, 1}},
		{Name: "x", DType: tensor.FP32, Shape: []int64{-1, 2}}, {Name: "free", DType: tensor.Int64},
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := GenerateBody(body, inputs, true, Bounds{Elements: 1000})
		if err != nil {
			return
		}
		if !json.Valid(got) {
			t.Fatalf("%s became %s", body, got)
		}
		_, _ = DecodeREST(got, NoBinary, Bounds{Elements: 1000}, nil, nil)
	})
}
