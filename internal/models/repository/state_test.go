package repository

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// A state starts as its model says: with zeros, or with what a file of the model has, in the shape that is written.
func TestStatesStart(t *testing.T) {
	const n = onnxmodel.Symbolic
	g := onnxmodel.NewGraph("g").Input("x", onnxmodel.Int32, n, 1).Input("was", onnxmodel.Int32, n, n).
		Node("Add", []string{"x", "was"}, []string{"is"}).Node("Identity", []string{"is"}, []string{"y"}).
		Output("y", onnxmodel.Int32, n, n).Output("is", onnxmodel.Int32, n, n)
	root := t.TempDir()
	write(t, root, "m/1/model.onnx", "")
	if err := g.Write(filepath.Join(root, "m/1/model.onnx")); err != nil {
		t.Fatal(err)
	}
	write(t, root, "m/initial_state/two", "\x01\x00\x00\x00\x02\x00\x00\x00")
	write(t, root, "secret", "\x01\x00\x00\x00\x02\x00\x00\x00")
	for _, x := range []struct {
		state string // in config.pbtxt
		shown bool
		start []int64
		first string
		want  string // of the error
	}{
		{"", false, []int64{1}, "", ""},
		{"dims: [ 3 ]", true, []int64{3}, "", ""},
		{"initial_state { data_type: TYPE_INT32 dims: [ 2 ] zero_data: true }", false, []int64{2}, "", ""},
		{"initial_state { dims: [ 2 ] data_file: 'two' } dims: [ -1 ]", false, []int64{2},
			"\x01\x00\x00\x00\x02\x00\x00\x00", ""},
		{"initial_state { dims: [ 3 ] data_file: 'two' }", false, nil, "", "needs 3 elements of 4 bytes"},
		{"initial_state { dims: [ 2 ] data_file: '../../secret' }", false, nil, "", "initial_state/secret: not found"},
		{"initial_state { dims: [ 2, 2 ] zero_data: true }", false, nil, "", "dims are [2,2]"},
		{"initial_state { zero_data: true } initial_state { zero_data: true }", false, nil, "", "one at most"},
		{"dims: [ 1000000000000 ]", false, nil, "", "exceed"},
	} {
		config := "max_batch_size: 4\noutput { name: 'y' data_type: TYPE_INT32 dims: [ -1 ] }\n" +
			"sequence_batching { state { input_name: 'was' output_name: 'is' data_type: TYPE_INT32 " + x.state +
			" } }\n"
		if x.shown {
			config += "output { name: 'is' data_type: TYPE_INT32 dims: [ -1 ] }\n"
		}
		write(t, root, "m/config.pbtxt", config)
		m, err := open(t, root).Model("m")
		if x.want != "" {
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%s: %v, want %q", x.state, err, x.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", x.state, err)
			continue
		}
		s := m.Sequence.States[0]
		if !slices.Equal(s.Start, x.start) || string(s.First) != x.first || s.Shown != x.shown || s.Fixed() {
			t.Errorf("%s: %+v", x.state, s)
		}
		if got := len(m.Outputs); got != 1+map[bool]int{true: 1}[x.shown] {
			t.Errorf("%s: %d outputs are seen", x.state, got)
		}
	}
}
