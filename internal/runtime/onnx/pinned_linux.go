//go:build cgo

package onnx

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// processors are those that this process may use and no instance has.
type processors struct {
	once sync.Once
	mu   sync.Mutex
	all  unix.CPUSet
	free []int
	err  error // why none can be given out
}

func (p *processors) begin() {
	if p.err = unix.SchedGetaffinity(0, &p.all); p.err != nil {
		return
	}
	for c := range len(p.all) * 64 {
		if p.all.IsSet(c) {
			p.free = append(p.free, c)
		}
	}
}

// take gives out n processors, the lowest that are free.
func (p *processors) take(n int) (*pinned, error) {
	p.once.Do(p.begin)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil && len(p.free) < n {
		return nil, fmt.Errorf("%d processors are wanted, %d are free", n, len(p.free))
	}
	if p.err != nil {
		return nil, p.err
	}
	out := &pinned{all: &p.all, list: slices.Clone(p.free[:n])}
	p.free = p.free[n:]
	for _, c := range out.list {
		out.set.Set(c)
	}
	return out, nil
}

// give takes processors back. Nil has none.
func (p *processors) give(x *pinned) {
	if x == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, x.list...)
	slices.Sort(p.free)
}

// pinned are the processors of one slot. Nil stands for any.
type pinned struct {
	all  *unix.CPUSet
	set  unix.CPUSet
	list []int
}

// on calls f on a thread that runs on the processors alone. Threads that f begins stay on them.
func (x *pinned) on(f func() error) error {
	if x == nil {
		return f()
	}
	runtime.LockOSThread()
	if err := unix.SchedSetaffinity(0, &x.set); err != nil { // they were taken from the process
		runtime.UnlockOSThread()
		return f()
	}
	defer func() {
		if unix.SchedSetaffinity(0, x.all) == nil { // else the thread ends with its goroutine
			runtime.UnlockOSThread()
		}
	}()
	return f()
}
