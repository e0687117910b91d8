package test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"flag"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel/pb"
)

var (
	magika      = flag.String("magika", "", "checkout of github.com/google/magika, for TestKindsOfFiles")
	magikaFiles = flag.String("magika-files", "/usr", "folders of files that it tells the kind of, with commas between")
)

const (
	kindBytes   = 2048 // of the beginning of a file, and of its end
	kindPadding = 256  // stands for no byte
	mostOfKind  = 160  // files of each kind
)

// Models of others: Magika's (Apache-2.0), which tell 213 kinds of files by 4,096 of their bytes, by 2,048 or by 1,024.
// Files are labelled by their names' extensions. It takes a checkout and files; see docs/cascades.md.
func TestKindsOfFiles(t *testing.T) {
	needsONNX(t)
	if *magika == "" {
		t.Skip("give -magika, a checkout of github.com/google/magika")
	}
	dir := t.TempDir()
	l := &classifiers{app: "kinds", dir: dir, slo: "200ms", measured: filepath.Join(dir, "measured"),
		sent: filepath.Join(dir, "sent"), variants: []string{"standard_v2_1", "begonly_v2_1", "fast_v2_1"}}
	for name, ends := range map[string][2]int64{
		"standard_v2_1": {kindBytes, kindBytes}, "begonly_v2_1": {kindBytes, 0}, "fast_v2_1": {512, 512},
	} {
		from := filepath.Join(*magika, "assets", "models", name, "model.onnx")
		if err := wholeFiles(from, filepath.Join(dir, "models", name, "1", "model.onnx"), ends); err != nil {
			t.Fatal(err)
		}
	}
	kinds := kindsOf(t)
	var measured, sent []labelled
	rng := rand.New(rand.NewPCG(5, 6))
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		files := kinds[kind]
		rng.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
		files = files[:min(len(files), mostOfKind)]
		measured, sent = append(measured, files[:len(files)/2]...), append(sent, files[len(files)/2:]...)
	}
	t.Logf("%d kinds, %d files to measure and %d to send", len(kinds), len(measured), len(sent))
	writeKinds(t, l.measured, measured)
	writeKinds(t, l.sent, sent)
	l.compare(t)
}

// wholeFiles writes a model that takes both ends of a file and gives its own the bytes that it knows, and the number of
// the best kind beside the scores.
func wholeFiles(from, to string, ends [2]int64) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var m pb.ModelProto
	if err := proto.Unmarshal(data, &m); err != nil {
		return err
	}
	g := m.Graph
	in, scores := g.Input[0].Name, g.Output[0].Name
	for _, n := range g.Node {
		for k := range n.Input {
			if n.Input[k] == in {
				n.Input[k] = in + "_known"
			}
		}
	}
	add := onnxmodel.NewGraph("ends").Input(in, onnxmodel.Int32, onnxmodel.Symbolic, 2*kindBytes)
	var parts []string
	for k, at := range [2][2]int64{{0, ends[0]}, {2*kindBytes - ends[1], 2 * kindBytes}} {
		if at[0] == at[1] {
			continue
		}
		name := []string{"beginning", "end"}[k]
		for x, value := range map[string]int64{"_from": at[0], "_to": at[1], "_axis": 1} {
			add.InitializerInt64(name+x, []int64{value}, 1)
		}
		add.Node("Slice", []string{in, name + "_from", name + "_to", name + "_axis"}, []string{name})
		parts = append(parts, name)
	}
	add.Node("Concat", parts, []string{in + "_known"}, onnxmodel.AttrInt("axis", 1))
	head := add.Model(onnxmodel.DefaultOpset, onnxmodel.DefaultIR).Graph
	tail := onnxmodel.NewGraph("kind").Node("ArgMax", []string{scores}, []string{"label"}, onnxmodel.AttrInt("axis", 1),
		onnxmodel.AttrInt("keepdims", 0)).Output("label", onnxmodel.Int64, onnxmodel.Symbolic)
	last := tail.Model(onnxmodel.DefaultOpset, onnxmodel.DefaultIR).Graph
	g.Input, g.Initializer = head.Input, append(g.Initializer, head.Initializer...)
	g.Node = slices.Concat(head.Node, g.Node, last.Node)
	g.Output = append(g.Output, last.Output...)
	return onnxmodel.Write(to, &m)
}

// labelled is a file that is of some kind.
type labelled struct {
	path  string
	label int
}

// kindsOf finds files whose extension stands for one kind alone, by kind.
func kindsOf(t *testing.T) map[int][]labelled {
	t.Helper()
	read := func(to any, path ...string) {
		text, err := os.ReadFile(filepath.Join(append([]string{*magika, "assets"}, path...)...))
		if err == nil {
			err = json.Unmarshal(text, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var known map[string]struct{ Extensions []string }
	var space struct {
		Labels []string `json:"target_labels_space"`
	}
	read(&known, "content_types_kb.min.json")
	read(&space, "models", "standard_v2_1", "config.min.json")
	label := make(map[string]int)
	for k, name := range space.Labels {
		for _, x := range known[name].Extensions {
			if _, twice := label["."+x]; twice {
				k = -1
			}
			label["."+x] = k
		}
	}
	out := make(map[int][]labelled)
	for root := range strings.SplitSeq(*magikaFiles, ",") {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			k, ok := label[filepath.Ext(path)]
			if err != nil || !ok || k < 0 || !d.Type().IsRegular() {
				return nil //nolint:nilerr // what cannot be read is left out
			}
			if about, err := d.Info(); err == nil && about.Size() >= 64 {
				out[k] = append(out[k], labelled{path, k})
			}
			return nil
		})
	}
	return out
}

// writeKinds writes files as samples: the bytes of both ends without the blanks around them, as the models have them.
func writeKinds(t *testing.T, folder string, files []labelled) {
	t.Helper()
	var inputs, labels []byte
	count := 0
	for _, f := range files {
		data, err := os.ReadFile(f.path)
		if err != nil {
			continue
		}
		count++
		const blanks, block = " \t\n\r\v\f", 4096
		first := bytes.TrimLeft(data[:min(len(data), block)], blanks)
		last := bytes.TrimRight(data[max(0, len(data)-block):], blanks)
		first, last = first[:min(len(first), kindBytes)], last[max(0, len(last)-kindBytes):]
		var tokens [2 * kindBytes]uint32
		for k := range tokens {
			tokens[k] = kindPadding
		}
		for k, b := range first {
			tokens[k] = uint32(b)
		}
		for k, b := range last {
			tokens[2*kindBytes-len(last)+k] = uint32(b)
		}
		for _, x := range tokens {
			inputs = binary.LittleEndian.AppendUint32(inputs, x)
		}
		labels = binary.LittleEndian.AppendUint64(labels, uint64(f.label))
	}
	about, err := json.Marshal(map[string]any{
		"inputs": []any{map[string]any{
			"name": "bytes", "datatype": "INT32", "shape": []int{2 * kindBytes}, "file": "inputs.bin",
		}},
		"label_output": "label", "labels": map[string]string{"datatype": "INT64", "file": "labels.bin"}, "count": count,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"inputs.bin": inputs, "labels.bin": labels, "samples.json": about} {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
