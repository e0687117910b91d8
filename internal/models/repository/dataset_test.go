package repository_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	onnxpb "github.com/sluice-serving/sluice/internal/models/onnxmodel/pb"
	"github.com/sluice-serving/sluice/internal/models/repository"
)

// Inputs that lie beside a model in the layout of the ONNX standard are what it is measured with, by name or by number.
// What does not fit is a warning.
func TestDataSetsAreFound(t *testing.T) {
	numbers := func(name string, dims ...int64) *onnxpb.TensorProto {
		n := int64(1)
		for _, d := range dims {
			n *= d
		}
		x := &onnxpb.TensorProto{Name: name, DataType: int32(onnxmodel.Int64), Dims: dims}
		for k := range n {
			x.Int64Data = append(x.Int64Data, 10+k)
		}
		return x
	}
	type files []*onnxpb.TensorProto
	type shapes [][]int64
	a, b, items := numbers("a", 3, 2), numbers("b", 3), shapes{{1, 2}, {1}}
	const open = onnxmodel.Symbolic
	for name, c := range map[string]struct {
		config, folder string
		files          files
		shapes         shapes // of the inputs a and b; nil for none
		first          byte   // of a
		warning        string
	}{
		"items":           {"", "1", files{a, b}, items, 10, ""},
		"in the folder":   {"", "", files{numbers("", 3, 2), numbers("", 3)}, items, 10, ""},
		"in another turn": {"", "1", files{b, a}, items, 10, ""},
		"whole": {"max_batch_size: 0", "1", files{a, b},
			shapes{{3, 2}, {3}}, 10, ""},
		"one is missing": {"", "1", files{a}, nil, 0, ""},
		"another type": {"", "1", files{
			{DataType: int32(onnxmodel.Bool), Dims: []int64{1}, RawData: []byte{1}},
		},
			nil, 0, `input_0.pb is of type BOOL, input "a" of INT64`},
		"no item": {"", "1", files{numbers("a", 0, 2), b}, nil, 0, "has no item"},
		"too little": {"", "1", files{
			{DataType: int32(onnxmodel.Int64), Dims: []int64{5}},
		}, nil, 0, "needs 40 bytes"},
		"twice": {"", "1", files{a, a}, nil, 0, "was there before"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put := func(data []byte, at ...string) {
				path := filepath.Join(append([]string{dir, "m"}, at...)...)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if c.config != "" {
				put([]byte(c.config), "config.pbtxt")
			}
			for k, x := range c.files {
				data, err := proto.Marshal(x)
				if err != nil {
					t.Fatal(err)
				}
				put(data, c.folder, "test_data_set_0", "input_"+string(rune('0'+k))+".pb")
			}
			g := onnxmodel.NewGraph("m").Input("a", onnxmodel.Int64, open, 2).Input("b", onnxmodel.Int64, open).
				Node("Identity", []string{"a"}, []string{"y"}).Output("y", onnxmodel.Int64, open, 2)
			put(nil, "1", "model.onnx")
			if err := g.Write(filepath.Join(dir, "m", "1", "model.onnx")); err != nil {
				t.Fatal(err)
			}
			r, err := repository.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			m, err := r.Model("m")
			if err != nil {
				t.Fatal(err)
			}
			got := m.Trial(1)
			if len(got) != len(c.shapes) || len(m.Example(1)) != 0 {
				t.Fatalf("%+v, warmed up with %v", got, m.Example(1))
			}
			for _, x := range got {
				if want := c.shapes[x.Name[0]-'a']; !slices.Equal(x.Shape, want) || x.Data[0] != c.first {
					t.Errorf("%+v, want shape %v", x, want)
				}
			}
			said := strings.Join(m.Warnings, "\n")
			if c.warning == "" && said != "" || !strings.Contains(said, c.warning) {
				t.Errorf("warnings %q, want %q", said, c.warning)
			}
		})
	}
}
