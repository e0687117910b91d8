package digits

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestWriteSamples(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "samples")
	for range 2 {
		if err := WriteSamples(dir, 13, 5); err != nil {
			t.Fatal(err)
		}
	}
	var meta map[string]any
	data, err := os.ReadFile(filepath.Join(dir, "samples.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &meta); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"inputs": []any{
			map[string]any{
				"name": "image", "datatype": "UINT8", "shape": []any{1.0, float64(Size), float64(Size)},
				"file": "inputs.bin",
			},
		},
		"labels": map[string]any{"datatype": "INT64", "file": "labels.bin"}, "label_output": "label", "count": 5.0,
	}
	if !reflect.DeepEqual(meta, want) {
		t.Errorf("got %v", meta)
	}
	images, labels := Set(13, 5)
	in, _ := os.ReadFile(filepath.Join(dir, "inputs.bin"))
	out, _ := os.ReadFile(filepath.Join(dir, "labels.bin"))
	if !bytes.Equal(in, images) || len(out) != 5*8 {
		t.Fatalf("%d and %d bytes, or not the pictures of the set", len(in), len(out))
	}
	if v := int64(binary.LittleEndian.Uint64(out[8*4:])); v != labels[4] {
		t.Errorf("label 4 is %v, want %v", v, labels[4])
	}
	if err := WriteSamples(dir, 13, 0); err == nil {
		t.Error("wrote no samples")
	}
}
