//go:build unix

package server

import (
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// stormDisk is how much space there is: it is full in that no file of this process can grow beyond a size. The zero
// value has space.
type stormDisk struct {
	mu      sync.Mutex
	before  *syscall.Rlimit // what the limit was; nil while there is space
	turn    int             // of fills: an earlier one does not end a later one
	wasFull bool
}

// fill leaves space for files up to a size only, for a time.
func (d *stormDisk) fill(size uint64, lasts time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.before == nil {
		signal.Ignore(syscall.SIGXFSZ) // which a write beyond the limit sends
		d.before = new(syscall.Rlimit)
		must(syscall.Getrlimit(syscall.RLIMIT_FSIZE, d.before))
	}
	d.limit(size)
	d.wasFull = true
	d.turn++
	turn := d.turn
	time.AfterFunc(lasts, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.turn == turn {
			d.release()
		}
	})
}

func (d *stormDisk) limit(size uint64) {
	now := *d.before
	now.Cur = min(size, now.Max)
	must(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &now))
}

func (d *stormDisk) release() {
	if d.before != nil {
		must(syscall.Setrlimit(syscall.RLIMIT_FSIZE, d.before))
		d.before = nil
	}
}

func (d *stormDisk) isFull() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.before != nil
}

// empty has space again.
func (d *stormDisk) empty() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn++
	d.release()
}

// with does what needs space.
func (d *stormDisk) with(do func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.before == nil {
		do()
		return
	}
	var full syscall.Rlimit
	must(syscall.Getrlimit(syscall.RLIMIT_FSIZE, &full))
	must(syscall.Setrlimit(syscall.RLIMIT_FSIZE, d.before))
	do()
	must(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full))
}
