package test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/cli"
	"github.com/sluice-serving/sluice/internal/runtime/native"
)

// asProgram makes the test binary behave as the sluice program, so that tests have real processes to kill without
// building anything.
const asProgram = "SLUICE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(cli.Main(cli.OS()))
	}
	os.Exit(withCache(m))
}

// withCache runs the tests with a user's cache of their own: what an earlier run has measured does not count.
func withCache(m *testing.M) int {
	cache, err := os.MkdirTemp("", "sluice-test-cache-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(cache)
	if err := os.Setenv("XDG_CACHE_HOME", cache); err != nil {
		panic(err)
	}
	return m.Run()
}

// sluice starts the program as a process of its own.
func sluice(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return sluiceWith(t, func(*exec.Cmd) {}, args...)
}

// sluiceWith is sluice, and changes the command before it is started.
func sluiceWith(t *testing.T, change func(*exec.Cmd), args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), asProgram+"=1")
	var out lockedBuffer
	c.Stdout, c.Stderr = &out, &out
	change(c)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		if t.Failed() {
			t.Logf("sluice %s said:\n%s", strings.Join(args, " "), out.String())
		}
	})
	return c
}

// server is a process that serves.
type server struct {
	*exec.Cmd
	http, grpc, admin string // HOST:PORT that it listens on, or off
	said              *lockedBuffer
}

// url is where a server answers over HTTP.
func (s *server) url() string { return "http://" + s.http }

// listens is the line of a server's log, in either format, that says where it listens.
var listens = regexp.MustCompile(`msg=serving http=(\S+) grpc=(\S+) admin=(\S+)|` +
	`"msg":"serving","http":"(\S+?)","grpc":"(\S+?)","admin":"(\S+?)"`)

// serve starts a server and waits until it listens. Its configuration or args have it listen on ports that are free.
func serve(t *testing.T, args ...string) *server {
	t.Helper()
	return serveWith(t, func(*exec.Cmd) {}, args...)
}

// serveWith is serve, and changes the command before it is started.
func serveWith(t *testing.T, change func(*exec.Cmd), args ...string) *server {
	t.Helper()
	c := sluiceWith(t, change, append([]string{"serve"}, args...)...)
	s := &server{Cmd: c, said: c.Stderr.(*lockedBuffer)}
	until(t, func() bool {
		at := listens.FindStringSubmatch(s.said.String())
		if at != nil {
			s.http, s.grpc, s.admin = at[1]+at[4], at[2]+at[5], at[3]+at[6]
		}
		return at != nil
	})
	return s
}

// run runs a command of the program inside the test.
func run(ctx context.Context, args ...string) (status int, out, errs string) {
	var o, e lockedBuffer
	status = cli.Main(cli.Env{
		Args: args, Stdin: strings.NewReader(""), Stdout: &o, Stderr: &e, Getenv: os.Getenv, Context: ctx,
	})
	return status, o.String(), e.String()
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// listening waits until something accepts connections.
func listening(t *testing.T, address string) {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < 2*time.Minute; time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			return
		}
	}
	t.Fatalf("nothing listens on %s after two minutes", address)
}

func write(t *testing.T, dir, name, text string, args ...any) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, fmt.Appendf(nil, text, args...), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// needsONNX skips a test where ONNX Runtime is not installed.
func needsONNX(t *testing.T) {
	t.Helper()
	_, err := native.ONNXRuntime()
	switch {
	case errors.Is(err, native.ErrMissing):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
}
