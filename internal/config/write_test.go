package config

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// TestWrittenFilesReadTheSame writes the examples and reads them again.
func TestWrittenFilesReadTheSame(t *testing.T) {
	paths, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, path := range append(paths, "../../examples/pipeline/sluice.yaml", "../../examples/python/sluice.yaml") {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f := bare(t, data)
		out, err := f.YAML()
		if err != nil {
			t.Fatal(err)
		}
		if again := bare(t, out); !reflect.DeepEqual(f, again) {
			t.Errorf("%s, written anew:\n%s\nreads\n%+v\nwant\n%+v", path, out, again, f)
		}
		if _, err := Parse(out, path); err != nil {
			t.Errorf("%s, written anew:\n%s\n%v", path, out, err)
		}
	}
}

func TestTextsAreWrittenAsTexts(t *testing.T) {
	f := &File{Version: 1, DeviceTypes: []DeviceType{{Name: "true", Memory: 3 << 30}, {Name: "12"},
		{Name: "a: b\n# c"}},
		System: System{Options: map[string]string{"a": "1.50", "b": ""}}}
	data, err := f.YAML()
	if err != nil {
		t.Fatal(err)
	}
	again := bare(t, data)
	if !reflect.DeepEqual(f, again) {
		t.Errorf("%s\nreads %+v", data, again)
	}
}

// bare reads a file without its defaults and checks.
func bare(t *testing.T, data []byte) *File {
	t.Helper()
	f := &File{lines: map[string]int{}}
	c := &checker{f: f, bad: map[string]bool{}}
	if !c.read(data, f, "") || c.err() != nil {
		t.Fatalf("%s\n%v", data, c.err())
	}
	f.lines = nil
	return f
}
