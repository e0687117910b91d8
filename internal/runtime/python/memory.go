package python

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// align is the alignment of tensors in shared memory, in bytes.
const align = 64

// memory is an anonymous file that this process and one worker have mapped. It has no name that could be left behind,
// and goes with the last of the two. Where the kernel can, it is sealed: a worker that made it smaller would end this
// process (SIGBUS).
type memory struct {
	file *os.File
	data []byte
}

func newMemory(size int) (*memory, error) {
	f, err := anonymousFile()
	if err != nil {
		return nil, fmt.Errorf("python: shared memory: %w", err)
	}
	m := &memory{file: f}
	if err := m.grow(size); err != nil {
		_ = f.Close()
		return nil, err
	}
	return m, nil
}

// grow makes it at least as large. Parts of it that were handed out before are not valid any more.
func (m *memory) grow(size int) error {
	if size <= len(m.data) {
		return nil
	}
	size = (max(size, 2*len(m.data)) + os.Getpagesize() - 1) / os.Getpagesize() * os.Getpagesize()
	if err := unix.Ftruncate(int(m.file.Fd()), int64(size)); err != nil {
		return fmt.Errorf("python: %d bytes of shared memory: %w", size, err)
	}
	data, err := unix.Mmap(int(m.file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("python: %d bytes of shared memory: %w", size, err)
	}
	if m.data != nil {
		_ = unix.Munmap(m.data)
	}
	m.data = data
	return nil
}

// part returns a part of it, if it lies inside.
func (m *memory) part(offset, size int) ([]byte, bool) {
	if offset < 0 || size < 0 || offset > len(m.data) || size > len(m.data)-offset {
		return nil, false
	}
	return m.data[offset : offset+size : offset+size], true
}

// close unmaps it.
func (m *memory) close() {
	if m.data != nil {
		_ = unix.Munmap(m.data)
		m.data = nil
	}
	_ = m.file.Close()
}

func aligned(n int) int { return (n + align - 1) / align * align }
