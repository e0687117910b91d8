package test

import (
	"errors"
	"io"
	"os"
	"testing"

	"github.com/sluice-serving/sluice/internal/engine/journal"
)

// steps reads a journal, step by step, and returns its header.
func steps(t *testing.T, path string, each func(s *journal.Step)) journal.Header {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := journal.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for {
		s, err := r.Next()
		if errors.Is(err, io.EOF) {
			return r.Header()
		}
		if err != nil {
			t.Fatal(err)
		}
		each(&s)
	}
}

// unmeasured is steps of a server that knew no latency at the start.
func unmeasured(t *testing.T, path string, each func(s *journal.Step)) {
	t.Helper()
	if n := len(steps(t, path, each).Measurements.Latency); n != 0 {
		t.Errorf("the server knew %d latencies from the start", n)
	}
}
