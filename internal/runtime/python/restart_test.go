package python

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/longtest"
)

// held is what this process has of the system: open files, mappings of shared memory, and workers.
type held struct{ files, maps, workers int }

func holds(t testing.TB) (out held) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip(err)
	}
	return held{len(files), strings.Count(string(maps), "sluice-tensors"), len(workers(t))}
}

// A process that is killed again and again is replaced every time, and leaves nothing behind. SLUICE_RESTARTS says how
// often.
func TestRestarts(t *testing.T) {
	r, l := launched(t, scale, nil)
	answered := func() bool {
		err := r.Run(t.Context(), batchOf([]float32{1}))
		if remote := (*dataplane.RemoteError)(nil); err != nil && !errors.Is(err, dataplane.ErrInstanceLost) &&
			!errors.As(err, &remote) {
			t.Fatal(err, l.text())
		}
		return err == nil
	}
	until(t, answered)
	pool := r.(*instance).pools[0]
	kill := func() {
		pool.mu.Lock()
		defer pool.mu.Unlock()
		for x := range pool.held {
			_ = syscall.Kill(x.pid, syscall.SIGKILL)
		}
	}
	first := holds(t)
	n := longtest.Of(8, 25)
	if own, err := strconv.Atoi(os.Getenv("SLUICE_RESTARTS")); err == nil {
		n = own
	}
	for range n {
		kill()
		until(t, answered)
	}
	until(t, func() bool {
		now := holds(t)
		return now.files <= first.files && now.maps <= first.maps && now.workers <= first.workers
	})
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if left := holds(t); left.maps > 0 || left.workers > 0 {
		t.Errorf("at the end there are %d mappings and the processes %v", left.maps, workers(t))
	}
}

// A class that takes seconds to import is waited for, and one that never comes up ends with its context.
func TestSlowStart(t *testing.T) {
	launched(t, "import time\ntime.sleep(1.5)\n"+scale, nil)
	b, _ := backendOf(t, "import time\ntime.sleep(3600)\n"+scale, nil)
	if _, err := b.Launch(short(t), dataplane.InstanceSpec{Variants: variant, BatchLimit: 1}); err == nil {
		t.Error("a class that is never imported was launched")
	}
	if left := workers(t); len(left) > 2 { // those of the first class
		t.Errorf("processes are left: %v", left)
	}
}
