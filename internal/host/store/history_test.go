package store

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/measure/board"
)

// piece is a second of an app.
func piece(second int64) map[string]*board.Series {
	x := 0.5
	one, some := []*float64{&x}, []uint32{uint32(second)}
	return map[string]*board.Series{"app": {
		StepS: 1, At: []int64{second}, Offered: some, Served: some, Violations: some, Cancelled: some, Accuracy: one,
		P50: one, P99: one, Routed: one, Held: one, Run: one, MeanBatch: one, Latency: [][]uint32{{1, 2}},
		Dollars: []float64{1}, Busy: one,
	}}
}

// A history keeps the newest pieces within its bytes and its age, and is there after it was closed. A damaged file is
// put aside, and said to be.
func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.db")
	open := func(limit int64) *History {
		t.Helper()
		h, err := OpenHistory(path, limit)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	kept := func(h *History) (first, n int64) {
		t.Helper()
		list, err := h.App("app", 0, 1<<40)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) > 0 {
			first = list[0].At[0]
		}
		return first, int64(len(list))
	}
	const pieces = 20
	add := func(h *History, from int64) {
		t.Helper()
		for k := range int64(pieces) {
			if err := h.Add(from+60*k, piece(from+60*k)); err != nil {
				t.Fatal(err)
			}
		}
	}
	const start = 1_000_000
	h := open(1 << 20)
	add(h, start)
	if first, n := kept(h); first != start || n != pieces || h.Since() != start {
		t.Errorf("%d pieces from %d", n, first)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h = open(1 << 20)
	later := int64(start) + int64(HistoryAge/time.Second) + 60*5
	if err := h.Add(later, piece(later)); err != nil {
		t.Fatal(err)
	}
	if first, n := kept(h); first != start+60*5 || n != pieces-5+1 {
		t.Errorf("after a day %d pieces from %d", n, first)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h = open(1500)
	add(h, later+60)
	if first, n := kept(h); n == 0 || n >= pieces || first != later+60+60*(pieces-n) {
		t.Errorf("with few bytes %d pieces from %d", n, first)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data[:len(data)/3], 0o600); err != nil {
		t.Fatal(err)
	}
	h = open(1500)
	defer h.Close()
	if h.Lost() == "" {
		t.Error("nobody is told of a damaged file")
	}
}
