package reproduce

import (
	"context"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// Runs are the results of a task, one for each seed.
type Runs[T any] struct{ task *task }

// Add adds work that runs with so many seeds, from Request.First on, and returns its results. When a task of the same
// key exists, its results are returned instead and nothing is added: figures that need the same results share them.
// weight is a guess of the run time in any unit. Heavy tasks start first, and progress is reported as a share of the
// total weight.
func Add[T any](r *Runner, key string, weight, seeds int,
	do func(ctx context.Context, seed uint64) (T, error)) Runs[T] {
	return Runs[T]{r.addTask(key, weight, seeds, func(ctx context.Context, seed uint64) (any, error) {
		return do(ctx, seed)
	})}
}

// Results returns the results by seed. The task must have run.
func (r Runs[T]) Results() []T {
	out := make([]T, len(r.task.results))
	for i, v := range r.task.results {
		out[i] = v.(T)
	}
	return out
}

// Of returns the result of a seed, counted from 0. The task must have run.
func (r Runs[T]) Of(seed int) T { return r.task.results[seed].(T) }

// First returns the result of the first seed.
func (r Runs[T]) First() T { return r.Of(0) }

// Each returns a number of every result.
func (r Runs[T]) Each(number func(T) float64) Values {
	return func() []float64 {
		var out []float64
		for _, v := range r.Results() {
			out = append(out, number(v))
		}
		return out
	}
}

// All are the numbers of a task whose results are numbers.
func All(r Runs[float64]) Values { return r.Results }

// Memo makes a value for each key once, also when tasks that run at the same time ask for it. Its zero value is empty.
type Memo[K comparable, V any] struct {
	mu   sync.Mutex
	made map[K]func() (V, error)
}

// Get returns the value of a key, which made makes when it is asked for the first time.
func (m *Memo[K, V]) Get(key K, make func() (V, error)) (V, error) {
	m.mu.Lock()
	if m.made == nil {
		m.made = map[K]func() (V, error){}
	}
	f := m.made[key]
	if f == nil {
		f = sync.OnceValues(make)
		m.made[key] = f
	}
	m.mu.Unlock()
	return f()
}

// System returns a system by name. It panics for an unknown one: the names are those of figures.
func System(name string) systems.System {
	s, err := systems.Get(name)
	if err != nil {
		panic(err)
	}
	return s
}

// Systems returns systems by name.
func Systems(names ...string) (out []systems.System) {
	for _, name := range names {
		out = append(out, System(name))
	}
	return out
}

// Query is a query of one item for an app, without wishes.
func Query(a serving.AppID) workload.Arrival {
	return workload.Arrival{App: a, Items: 1, Variant: serving.None, Sample: -1}
}

// Always returns a point of a profile at which every batch takes the same time.
func Always(p serving.LatencyPoint, took time.Duration) serving.LatencyPoint {
	p.Mean, p.P50, p.P90, p.P95, p.P99 = took, took, took, took, took
	return p
}
