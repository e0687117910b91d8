package sim

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// One machine serves an app whose batches take longer than another one's objective. Both are in time, since batches of
// the one begin beside those of the other.
func TestUrgentBatchesBeginBesideLongOnes(t *testing.T) {
	x := &saturated{spec: &serving.Spec{}}
	x.chain(time.Second, 3, 4, millis(80), millis(60))
	x.chain(20*time.Millisecond, 10, 8, millis(3), millis(2))
	got := x.run(t, 1, time.Minute)
	t.Logf("in time: %.3f and %.3f", got[0], got[1])
	if got[0] < 0.99 || got[1] < 0.99 {
		t.Error("want at least 99 % of both in time")
	}
}
