package rules

import (
	"cmp"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Alive is the keep-alive of OpenFaaS+ (INFless §5.1).
const Alive = 300 * time.Second

// FixedKeepAlive keeps an app warm for a fixed time.
type FixedKeepAlive struct {
	For   time.Duration // 0 means Alive
	spans [1]Span
}

// Name implements KeepAlive.
func (*FixedKeepAlive) Name() string { return "keepalive" }

// Idled implements KeepAlive.
func (*FixedKeepAlive) Idled(serving.Time, time.Duration) {}

// Warm implements KeepAlive.
func (k *FixedKeepAlive) Warm(serving.Time) []Span {
	k.spans[0] = Span{0, cmp.Or(k.For, Alive)}
	return k.spans[:]
}

// Remember implements KeepAlive: nothing is learned.
func (*FixedKeepAlive) Remember(b []byte, _ serving.Time) []byte { return b }

// Recall implements KeepAlive: nothing was learned.
func (*FixedKeepAlive) Recall([]byte, serving.Time, time.Duration) error { return nil }
