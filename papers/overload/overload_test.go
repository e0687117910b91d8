package overload

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-serving/sluice/internal/systems"
)

// The default system keeps 97 % of the capacity however much comes, and rules that batch what is about to be late do
// not: the picture of the documents is true.
func TestGoodput(t *testing.T) {
	t.Parallel()
	for k := range processes {
		for _, x := range []float64{2, 20} {
			if got, err := simulated(t.Context(), systems.Default, k, x, 1); err != nil || got < 0.97 || got > 1.02 {
				t.Errorf("%s, %v times: %.3f of the capacity, %v", processes[k].name, x, got, err)
			}
		}
	}
	if got, err := simulated(t.Context(), "nexus-batching", 0, 10, 1); err != nil || got > 0.5 {
		t.Errorf("nexus-batching at 10 times: %.3f, %v: want a fall", got, err)
	}
}

// On a clock on which batches end a moment after they are believed to, the default system holds its capacity, too: it
// does not fill batches with queries that can only just be in time.
func TestGoodputOnAClock(t *testing.T) {
	for _, x := range []float64{2, 20} {
		synctest.Test(t, func(t *testing.T) {
			got, err := onClock(t.Context(), systems.Default, 0, x, 1, 700*time.Microsecond)
			if err != nil || got < 0.97 || got > 1.05 {
				t.Errorf("%v times: %.3f of the capacity, %v", x, got, err)
			}
		})
	}
}

// Every system of the picture can be composed on the machine.
func TestSystems(t *testing.T) {
	w, err := newWorld(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range compared {
		if _, err := w.engine(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
