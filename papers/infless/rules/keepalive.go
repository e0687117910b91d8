package rules

import (
	"cmp"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Alive is the keep-alive of OpenFaaS+ (INFless §5.1).
const Alive = 300 * time.Second

// KeepAlive keeps an app warm for a fixed time.
type KeepAlive struct {
	For   time.Duration // 0 means Alive
	spans [1]Span
}

// Name implements Keeper.
func (*KeepAlive) Name() string { return "keepalive" }

// Idled implements Keeper.
func (*KeepAlive) Idled(serving.Time, time.Duration) {}

// Warm implements Keeper.
func (k *KeepAlive) Warm(serving.Time) []Span {
	k.spans[0] = Span{0, cmp.Or(k.For, Alive)}
	return k.spans[:]
}

// Remember implements Keeper: nothing is learned.
func (*KeepAlive) Remember(b []byte, _ serving.Time) []byte { return b }

// Recall implements Keeper: nothing was learned.
func (*KeepAlive) Recall([]byte, serving.Time, time.Duration) error { return nil }
