package server

import (
	"context"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/questions"
)

// answerAtLowPriority answers a question in this process at a low priority. An answer that ctx does not wait for is
// thrown away when it comes. A program that serves hands in a WhatIfAnswerer with a process of its own: there, not even
// the collection of garbage is in the way.
func answerAtLowPriority(ctx context.Context, q *questions.WhatIf) (*questions.WhatIfAnswer, error) {
	type result struct {
		answer *questions.WhatIfAnswer
		err    error
	}
	done := make(chan result, 1)
	go func() {
		lowPriority()
		answer, err := q.Answer(ctx, host.Options{}, nil) // it does not panic
		done <- result{answer, err}
	}()
	select {
	case r := <-done:
		return r.answer, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
