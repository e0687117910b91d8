package files

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/host/fault"
)

// A file of just the limit is read, a byte more is refused with the file's name.
func TestReadUpToALimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("12345"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(path, 5); err != nil || string(got) != "12345" {
		t.Errorf("%q %v", got, err)
	}
	marked := path + "marked"
	if err := os.WriteFile(marked, []byte("\ufeff12"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(marked, 5); err != nil || string(got) != "12" {
		t.Errorf("with a byte order mark: %q %v", got, err)
	}
	for name, read := range map[string]func() ([]byte, error){
		"too large": func() ([]byte, error) { return Read(path, 4) },
		"missing":   func() ([]byte, error) { return Read(path+"y", 4) },
	} {
		if _, err := read(); fault.Of(err) != fault.Config || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A file that could not be written in whole is as it was before, and nothing else lies beside it.
func TestWriteAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	text := func(s string, err error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, _ = io.WriteString(w, s)
			return err
		}
	}
	if err := Write(path, text("first", nil)); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := Write(path, text("sec", broken)); !errors.Is(err, broken) || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
	got, err := os.ReadFile(path)
	if list, _ := os.ReadDir(dir); err != nil || string(got) != "first" || len(list) != 1 {
		t.Errorf("%q %v, %d files", got, err, len(list))
	}
}
