package test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sluice-serving/sluice/internal/runtime/native"
)

// asShell makes the test binary a shell in a network of its own, in which the default ports are free.
const asShell = "SLUICE_TEST_AS_SHELL"

func init() {
	if os.Getenv(asShell) == "" {
		return
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err == nil {
		up, _ := unix.NewIfreq("lo")
		up.SetUint16(unix.IFF_UP)
		err = unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, up)
	}
	if err == nil {
		_ = os.Unsetenv(asShell)
		err = unix.Exec("/bin/bash", []string{"bash", "--norc", "-m"}, os.Environ())
	}
	fmt.Fprintln(os.Stderr, "a shell in a network of its own:", err)
	os.Exit(1)
}

// pageStep is a command of a page with the lines that the page shows below it.
type pageStep struct {
	at      string
	command string
	shown   []string
}

// pageSteps reads the blocks of a page that are marked as console. A line that begins with $ is a command. It goes on
// while a quotation or a document (<<) is open, or behind a backslash.
func pageSteps(t *testing.T, page string) (out []pageStep) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	console, open := false, false
	document := regexp.MustCompile(`<<'?(\w+)`)
	until := ""
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case !console:
			console = line == "```console"
		case line == "```" && !open:
			console = false
		case strings.HasPrefix(line, "$ ") && !open:
			out = append(out, pageStep{at: fmt.Sprintf("%s:%d", page, i+1), command: line[2:]})
			if m := document.FindStringSubmatch(line); m != nil {
				until = m[1]
			}
			open = until != "" || strings.Count(line, "'")%2 == 1 || strings.HasSuffix(line, `\`)
		case open:
			last := &out[len(out)-1]
			last.command += "\n" + line
			if until != "" {
				open = line != until
			} else {
				open = strings.Count(last.command, "'")%2 == 1 || strings.HasSuffix(line, `\`)
			}
			if !open {
				until = ""
			}
		case len(out) > 0:
			out[len(out)-1].shown = append(out[len(out)-1].shown, line)
		}
	}
	return out
}

// pattern is what a step's output must have in it: the lines as they stand, where ... is anything.
func (s pageStep) pattern() *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`(?s)`)
	for _, line := range s.shown {
		if line == "..." {
			b.WriteString(`.*`)
			continue
		}
		for i, part := range strings.Split(strings.TrimRight(line, " "), "...") {
			if i > 0 {
				b.WriteString(`[^\n]*`)
			}
			b.WriteString(regexp.QuoteMeta(part))
		}
		b.WriteString(`[ ]*\n`)
	}
	return regexp.MustCompile(b.String())
}

// shell runs the steps of a page, one after the other, in one shell.
type shell struct {
	t    *testing.T
	in   io.Writer
	said *lockedBuffer
}

func newShell(t *testing.T, python string) *shell {
	t.Helper()
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(home, "bin", "sluice")); err != nil {
		t.Fatal(err)
	}
	if python != "" {
		if err := os.Symlink(python, filepath.Join(home, "bin", "python3")); err != nil {
			t.Fatal(err)
		}
	}
	library, err := native.ONNXRuntime()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Dir = home
	c.Env = append(os.Environ(), asShell+"=1", asProgram+"=1", "HOME="+home, "XDG_CACHE_HOME="+home+"/.cache",
		"PATH="+home+"/bin:"+os.Getenv("PATH"), "SLUICE_PYTHON="+python, native.EnvONNXRuntime+"="+library.Path)
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	s := &shell{t: t, said: &lockedBuffer{}}
	c.Stdout, c.Stderr = s.said, s.said
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.in = in
	if err := c.Start(); err != nil {
		if os.Getuid() == 0 {
			t.Fatalf("a network of its own: %v", err)
		}
		t.Skipf("only root, or who may make namespaces, gives the pages a network of their own: %v", err)
	}
	t.Cleanup(func() {
		fmt.Fprintln(in, "jobs -p | xargs -r kill -9; exit")
		_ = in.Close()
		_ = c.Wait()
	})
	return s
}

// pythonWith is an interpreter that has the packages. Without one the test is skipped, or fails, as with needsPython.
func pythonWith(t *testing.T, packages string) string {
	t.Helper()
	for _, python := range []string{os.Getenv("SLUICE_PYTHON"), "python3", "/usr/bin/python3"} {
		path, err := exec.LookPath(python)
		if err == nil && exec.Command(path, "-c", "import "+packages).Run() == nil {
			return path
		}
	}
	if os.Getenv("SLUICE_PYTHON_TESTS") == "must" {
		t.Fatalf("no Python has %s", packages)
	}
	t.Skipf("no Python has %s", packages)
	return ""
}

const (
	stepEnds = "the step ends with status"
	longStep = 2 * time.Minute // a step that takes longer hangs
)

// run has a step done, and waits until what the page shows has been printed. A server that it starts goes on.
func (s *shell) run(step pageStep) {
	s.t.Helper()
	before := len(s.said.String())
	if _, err := fmt.Fprintf(s.in, "%s\nprintf '\\n%s %%d\\n' $?\n", step.command, stepEnds); err != nil {
		s.t.Fatalf("%s: the shell has ended: %v: %s", step.at, err, s.said.String())
	}
	want, ends := step.pattern(), regexp.MustCompile(`(?m)^`+stepEnds+` (\d+)\n`)
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		out := s.said.String()[before:]
		ended := ends.FindStringSubmatch(out)
		late := time.Since(begun) > longStep
		switch {
		case ended != nil && ended[1] != "0":
			s.t.Fatalf("%s: %s\nends with status %s:\n%s", step.at, step.command, ended[1], out)
		case ended != nil && want.MatchString(out):
			return
		case late || ended != nil && !strings.HasSuffix(step.command, "&"):
			s.t.Fatalf("%s: %s\nprints\n%s\nwhere the page shows\n%s", step.at, step.command, out,
				strings.Join(step.shown, "\n"))
		}
	}
}

// What a page shows must be there, in its order and to the letter.
func TestPagesShowWhatIsPrinted(t *testing.T) {
	out := "one 1\ntwo 2 of 3\nthree\n"
	for shown, want := range map[string]bool{
		"": true, "one 1": true, "...\nthree": true, "one 1\n...\nthree": true, "two ... of 3\nthree": true,
		"one 2": false, "three\none 1": false, "two ... of 4": false, "one 1\nthree": false,
	} {
		s := pageStep{shown: strings.Split(shown, "\n")}
		if got := s.pattern().MatchString(out); got != want {
			t.Errorf("%q matches: %v, want %v", shown, got, want)
		}
	}
}

// The commands of these pages do what the pages show, typed in by hand on a machine of one's own.
func TestPages(t *testing.T) {
	needsONNX(t)
	for _, c := range []struct {
		page, imports string // what Python must have
		fewest        int    // commands
	}{
		{"../README.md", "", 7},
		{"../docs/upgrading.md", "", 10},
		{"../docs/from-triton.md", "numpy", 15},
		{"../docs/from-torchserve.md", "torch, sklearn", 15},
	} {
		page, fewest := c.page, c.fewest
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			python := ""
			if c.imports != "" {
				python = pythonWith(t, c.imports)
			}
			all := pageSteps(t, page)
			if len(all) < fewest {
				t.Fatalf("%d commands", len(all))
			}
			s := newShell(t, python)
			for _, step := range all {
				s.run(step)
			}
		})
	}
}
