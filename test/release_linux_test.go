package test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/longtest"
)

// checkout is a clone of a repository with the files of scripts/release.sh as they are here.
func checkout(t *testing.T, from string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "checkout")
	git(t, ".", "clone", "-q", "--shared", "--no-tags", from, dir)
	for _, name := range []string{"scripts/release.sh", "CHANGELOG.md"} {
		if err := copied(filepath.Join("..", name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	c := exec.Command("git", append([]string{"-c", "user.name=test", "-c", "user.email=test@localhost"}, args...)...)
	c.Dir = dir
	if said, err := c.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, said)
	}
}

func released(dir, version, out string, env ...string) ([]byte, error) {
	c := exec.Command(filepath.Join(dir, "scripts", "release.sh"), version, out)
	c.Env = append(os.Environ(), env...)
	return c.CombinedOutput()
}

// What would make a wrong release, or a second one of a version, is refused before anything is built.
func TestReleaseRefuses(t *testing.T) {
	dir := checkout(t, "..")
	git(t, dir, "tag", "v0.1.0")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "later")
	for _, x := range []struct{ name, version, want string }{
		{"no version", "", "say which version"},
		{"no number", "new", "say which version"},
		{"a version without notes", "99.0.0", "no section '## [99.0.0]'"},
		{"a part of another version's name", "0.1", "say which version"},
		{"a version of another commit", "0.1.0", "v0.1.0 is a tag of another commit"},
	} {
		out := filepath.Join(t.TempDir(), "release")
		said, err := released(dir, x.version, out)
		if err == nil || !strings.Contains(string(said), x.want) {
			t.Errorf("%s: %v, %s, want %q", x.name, err, said, x.want)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s: files were made", x.name)
		}
	}
}

// Two releases of one commit, made in two folders, are the same bytes.
func TestReleaseIsRepeatable(t *testing.T) {
	if !longtest.Of(false, true) {
		t.Skip("two builds and packings take minutes: make long, and make release makes one")
	}
	var first []byte
	one := checkout(t, "..")
	for _, dir := range []string{one, checkout(t, one)} { // this repository may get commits meanwhile
		out := filepath.Join(t.TempDir(), "release")
		said, err := released(dir, "0.1.0", out, "RELEASE_PLATFORMS=linux/amd64 darwin/arm64",
			"RELEASE_PARTS=packages chart")
		if err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		sums, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(sums, []byte("\n")); n < 8 {
			t.Errorf("%d files are listed:\n%s", n, sums)
		}
		if first != nil && !bytes.Equal(first, sums) {
			t.Errorf("two releases of one commit differ:\n%s\n%s", first, sums)
		}
		first = sums
	}
}
