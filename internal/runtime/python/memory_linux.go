package python

import (
	"os"

	"golang.org/x/sys/unix"
)

// anonymousFile returns a file in memory that can grow and not shrink.
func anonymousFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("sluice-tensors", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL); err != nil {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), "sluice-tensors"), nil
}

// release gives back the memory from offset on. Its content is zeros afterwards.
func (m *memory) release(offset int) {
	_ = unix.Fallocate(int(m.file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(offset),
		int64(len(m.data)-offset))
}
