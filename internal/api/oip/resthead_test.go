package oip

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

var heads = []string{
	`{"inputs":[{"name":"x","datatype":"FP32","shape":[1,3],"data":[1,NaN,[3]]}]}`,
	`{"id":"7","parameters":{"binary_data_output":true,"timeout":1000,"min_accuracy":0.5,"sequence_id":"a"},
	  "inputs":[{"name":"x","shape":[2],"datatype":"FP32","parameters":{"binary_data_size":8}}],
	  "outputs":[{"name":"y"}]}`,
	`{"model_name":"m","model_version":"1","outputs":[]}`,
	`{"inputs":[{"name":"x","datatype":"FP32","shape":[],"data":[1]}] } `,
	`{"inputs":[{"name":"\u0061","datatype":"FP32","shape":[1],"data":[1]}]}`,
	`{"INPUTS":[{"Name":"x","datatype":"FP32","shape":[1],"data":[1]}],"more":{"a":[1,2]}}`,
	`{"id":"a","id":"b","parameters":{"priority":1,"priority":2}}`,
	`{"parameters":{"timeout":01,"priority":-0,"a":1e5,"b":-,"c":null}}`,
	`{"parameters":{},"inputs":null}`, `{"inputs":[{"shape":[1.0,-1,1e2,123456789012345678901]}]}`,
	`{"id":"a",}`, `{"id":"a"} x`, `[]`, `{`, `{"parameters":{"a":"\n"}}`, "{\"id\":\"\xff\"}",
	`{"inputs":[{"data":[1]},{"data":"x"}]}`, `{"instances":[[1]]}`,
}

// sameHead compares what the two readers make of a message. readHead may give up; what it accepts must mean the same.
func sameHead(t *testing.T, head string) {
	t.Helper()
	bounds := Bounds{}.WithDefaults()
	got := new(restMessage)
	ok := readHead([]byte(head), &bounds, got)
	if !ok {
		return
	}
	for _, list := range [][]restTensor{got.Inputs, got.Outputs} {
		for k := range list {
			var shape []int64
			if list[k].Shape != nil && (json.Unmarshal(list[k].Shape, &shape) != nil ||
				!reflect.DeepEqual(shape, list[k].dims)) {
				t.Errorf("%q: shape %s was read as %v", head, list[k].Shape, list[k].dims)
			}
		}
	}
	want, err := parseAny([]byte(head), &bounds)
	if err != nil {
		t.Fatalf("%q: is accepted; encoding/json says %v", head, err)
	}
	if a, b := show(got), show(want); a != b {
		t.Errorf("%q: read as\n%s\nencoding/json reads\n%s", head, a, b)
	}
}

// show writes a message with its parameters in the order of their names, empty lists like missing ones.
func show(m *restMessage) string {
	var b strings.Builder
	fields := func(f jsonFields) {
		sorted := map[string]string{}
		for _, x := range f {
			sorted[x.name] = string(x.value)
		}
		text, _ := json.Marshal(sorted)
		b.Write(text)
	}
	b.WriteString(m.ModelName + "|" + m.ModelVersion + "|" + m.ID + "|")
	fields(m.Parameters)
	for _, list := range [][]restTensor{m.Inputs, m.Outputs} {
		b.WriteString("|")
		for k := range list {
			x := &list[k]
			b.WriteString(x.Name + "," + x.Datatype + "," + string(x.Shape) + "," + string(x.Data) + ",")
			fields(x.Parameters)
		}
	}
	return b.String()
}

func TestUsualMessagesAreReadInOnePass(t *testing.T) {
	bounds := Bounds{}.WithDefaults()
	for k, head := range heads {
		sameHead(t, head)
		if ok := readHead([]byte(head), &bounds, new(restMessage)); ok != (k < 4) {
			t.Errorf("%q: read in one pass: %v", head, ok)
		}
	}
}

func FuzzReadHead(f *testing.F) {
	for _, head := range heads {
		f.Add(head)
	}
	f.Fuzz(func(t *testing.T, head string) { sameHead(t, head) })
}
