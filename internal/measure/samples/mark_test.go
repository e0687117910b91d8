package samples

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sluice-serving/sluice/tensor"
)

// Byte order marks, which some editors write, are no part of labels.csv and of tensors in JSON.
func TestByteOrderMarks(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"labels.csv": "\ufeffa.json,cat\n", "a.json": "\ufeff[1, 2]"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := Open(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Samples[0].File != "a.json" {
		t.Errorf("samples are %+v", f.Samples)
	}
	x, err := Decode("a.json", []byte("\ufeff[1, 2]"), &tensor.Spec{Name: "x", DType: tensor.Uint8, Shape: []int64{2}},
		false)
	if err != nil || string(x.Data) != "\x01\x02" {
		t.Errorf("%+v, %v", x, err)
	}
}
