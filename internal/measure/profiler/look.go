package profiler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
)

// lookSamples is the most runs of one batch size in a look.
const lookSamples = 20

// Look measures what is needed to begin with, in about the given time for each variant: how long one item takes,
// whether two run at all, and as many larger sizes as there is time for, one batch at once. Variants are loaded one
// after the other, and not warmed up. It returns as Run does.
func Look(ctx context.Context, cfg Config, within time.Duration, progress func(done, total int, what string)) (*File,
	error) {
	cfg.Slots, cfg.Partial, cfg.Spares = 1, "", nil
	p, subjects, err := begin(ctx, cfg, &partial{}, progress)
	if err != nil {
		return nil, err
	}
	p.cold = true
	for _, s := range subjects {
		if s.failure != nil {
			continue
		}
		if err := p.look(ctx, s, within); err != nil {
			return nil, err
		}
	}
	return p.file(subjects)
}

// look looks at one variant. Its error is ctx's, or that of closing the instance.
func (p *profiler) look(ctx context.Context, s *profiledVariant, within time.Duration) (err error) {
	start := time.Now()
	r, fits, took, failed := p.bringWithin(ctx, s, s.points[len(s.points)-1].batch)
	if failed != nil {
		p.fail(s, 0, failed)
		return ctx.Err()
	}
	defer func() {
		s.runner, s.batches = nil, nil
		err = errors.Join(err, r.Close())
	}()
	s.runner, s.memory.Loaded = r, took
	failed = p.findInputs(ctx, s, 1, 0)
	s.load = &Load{Variant: s.name, DeviceType: p.device(), Load: float64(time.Since(start)) / 1e6}
	if failed != nil {
		p.fail(s, 1, failed)
		return ctx.Err()
	}
	return p.lookAtSizes(ctx, s, fits, within)
}

// lookAtSizes runs batches of one item, of two, and of more while there is time.
func (p *profiler) lookAtSizes(ctx context.Context, s *profiledVariant, fits int, within time.Duration) error {
	until := time.Now().Add(within)
	share := within / time.Duration(len(s.points))
	item := time.Duration(0) // of the size before
	for _, q := range s.points {
		if q.batch > fits {
			p.dropTooLarge(q)
		}
		if likely := 2 * item * time.Duration(q.batch); !q.done && q.batch > 2 && time.Until(until) < likely {
			p.end(q, ": left for later")
		}
		if q.done {
			continue
		}
		if q.batch == 2 {
			if output := p.mixed(ctx, s); output != "" {
				p.fail(s, q.batch, fmt.Errorf("output %q of an item depends on what else is in its batch", output))
				continue
			}
		}
		begun := time.Now()
		for n := 0; len(q.samples) == 0 || n < lookSamples && time.Since(begun) < share; n++ {
			b, err := s.batchOf(q.batch)
			twice := n == 0 && q.batch == 2
			if twice {
				b, err = s.twice()
			}
			var took time.Duration
			if err == nil {
				took, err = timed(ctx, s.runner, copyOf(b))
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if errors.Is(err, dataplane.ErrOutOfMemory) && p.dropTooLarge(q) {
				break
			}
			if err != nil && !twice && p.mended(ctx, q) {
				continue
			}
			if err != nil {
				p.fail(s, q.batch, err)
				break
			}
			// The first run of a size plans its memory. It counts only where there is no time for another.
			if n == 1 {
				q.samples = q.samples[:0]
			}
			q.samples = append(q.samples, float64(took)/1e3)
			item = took / time.Duration(q.batch)
		}
		if !q.done {
			s.results = append(s.results, q.result(p.device()))
			p.end(q, "")
		}
	}
	return nil
}

// twice returns a batch of two items that are alike, and of which one runs. A model that takes the first dimension for
// something else may give two rows for two others all the same, as one that finds the different elements of a list.
func (s *profiledVariant) twice() (*dataplane.Batch, error) {
	one, err := s.batchOf(1)
	if err != nil || len(one.Portions) != 1 {
		return one, err
	}
	b := copyOf(one)
	b.Items *= 2
	b.Portions = append(b.Portions, b.Portions[0])
	b.Portions[1].Query++
	return b, nil
}

// findInputs finds inputs with which so many items run, and runs them. Those that are guessed suit few models that read
// indices, lengths or windows: others are tried then, from the given guess on. It returns the first error where none
// suits.
func (p *profiler) findInputs(ctx context.Context, s *profiledVariant, items, from int) error {
	var first error
	for k := from; k < len(s.source.guesses) && (k == 0 || s.source.guessable()); k++ {
		if items > 1 && s.source.guesses[k].length != s.source.guesses[from-1].length {
			break // it is the number of items that does not fit
		}
		b, err := s.source.with(k).batch(items)
		if err == nil {
			if err = s.runner.Run(ctx, copyOf(b)); err == nil {
				s.source.guess = k
				clear(s.batches)
				return nil
			}
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil || errors.Is(err, dataplane.ErrOutOfMemory) || errors.Is(err, dataplane.ErrInstanceLost) {
			break
		}
	}
	return first
}

// mended reports whether a point that failed with one guess of its inputs runs with a later one of that length: random
// numbers suit some sizes of a batch by chance.
func (p *profiler) mended(ctx context.Context, q *point) bool {
	s, was := q.subject, q.subject.source.guess
	return q.batch > 1 && s.source.guessable() && p.findInputs(ctx, s, q.batch, was+1) == nil && s.source.guess > was
}
