package loadgen

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

// timerfd is a timer of the kernel, with its resolution. The runtime's poller waits for it as for a socket.
type timerfd struct {
	f   *os.File
	raw syscall.RawConn
	buf [8]byte
}

type itimerspec struct {
	interval, value syscall.Timespec
}

const (
	clockMonotonic = 1
	tfdNonblock    = syscall.O_NONBLOCK
	tfdCloexec     = syscall.O_CLOEXEC
)

func newSleeper() sleeper {
	fd, _, errno := syscall.Syscall(syscall.SYS_TIMERFD_CREATE, clockMonotonic, tfdNonblock|tfdCloexec, 0)
	if errno != 0 {
		return timerSleeper{}
	}
	f := os.NewFile(fd, "timerfd")
	raw, err := f.SyscallConn()
	if err == nil {
		err = f.SetReadDeadline(time.Time{}) // fails where the poller does not accept the descriptor
	}
	if err != nil {
		f.Close()
		return timerSleeper{}
	}
	return &timerfd{f: f, raw: raw}
}

// sleepUntil waits for the kernel's timer or the runtime's, whichever comes first. The kernel's is exact while the
// process is idle, the runtime's while all its processors are busy.
func (t *timerfd) sleepUntil(at time.Time) {
	left := time.Until(at)
	if left <= 0 {
		return
	}
	spec := itimerspec{value: syscall.NsecToTimespec(int64(left))}
	var errno syscall.Errno
	err := t.raw.Control(func(fd uintptr) {
		_, _, errno = syscall.Syscall6(syscall.SYS_TIMERFD_SETTIME, fd, 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
	})
	if err != nil || errno != 0 || t.f.SetReadDeadline(at) != nil {
		time.Sleep(time.Until(at))
		return
	}
	// The read returns at the timer or at its deadline. Either way the instant has come, and the caller checks the
	// clock.
	_, _ = t.f.Read(t.buf[:])
}

func (t *timerfd) close() { t.f.Close() }
