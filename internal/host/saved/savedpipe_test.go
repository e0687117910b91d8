//go:build unix

package saved

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A folder with a pipe, or with a link to one or to nothing, is shown without it: nobody waits for who may write there.
// A pipe by itself is refused.
func TestPipesAreNotRead(t *testing.T) {
	dir := t.TempDir()
	crowded(t, dir)
	pipe := filepath.Join(dir, "a.json")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	for name, to := range map[string]string{"b.json": pipe, "c.json": filepath.Join(dir, "nothing")} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := OpenSaved(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if len(s.reports) != 1 || s.run == nil {
		t.Errorf("%d reports, run %v", len(s.reports), s.run)
	}
	if _, err := OpenSaved(pipe, 0); err == nil || !strings.Contains(err.Error(), "is no file") {
		t.Errorf("a pipe: %v", err)
	}
}
