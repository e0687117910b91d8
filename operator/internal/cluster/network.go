package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Pods' addresses are of blocks of 10.200.0.0/13, one for each control plane that runs at a time on this machine.
// Addresses of 127.0.0.0/8 would not do: the API server refuses them as endpoints.
const (
	blocks    = 32
	blockBits = 18
)

// block is a range of addresses that no other control plane on this machine uses.
type block struct {
	prefix netip.Prefix
	lock   *os.File
}

// takeBlock finds a free block. Its lock ends with the process.
func takeBlock() (*block, error) {
	for i := range blocks {
		name := filepath.Join(os.TempDir(), fmt.Sprintf("sluice-cluster-%d.lock", i))
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
		if err != nil {
			return nil, err
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			f.Close()
			continue
		}
		at := netip.AddrFrom4([4]byte{10, byte(200 + i/4), byte(i % 4 * 64), 0})
		return &block{netip.PrefixFrom(at, blockBits), f}, nil
	}
	return nil, fmt.Errorf("%d control planes are running on this machine: stop one", blocks)
}

func (b *block) release() { b.lock.Close() }

// simulated is the half of the block that simulated pods have their addresses of.
func (b *block) simulated() netip.Prefix { return netip.PrefixFrom(b.prefix.Addr(), blockBits+1) }

// route makes the addresses of simulated pods addresses of this machine. It needs the right to change routes.
func (b *block) route(add bool) error {
	verb := "replace"
	if !add {
		verb = "del"
	}
	return ip("route", verb, "local", b.simulated().String(), "dev", "lo")
}

// ip runs the command of iproute2.
func ip(args ...string) error {
	out, err := exec.CommandContext(context.Background(), "ip", args...).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("the command ip is missing: install Debian's package iproute2")
	}
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s (the tests on a cluster need root)", strings.Join(args, " "), err,
			strings.TrimSpace(string(out)))
	}
	return nil
}

// freePorts returns n TCP ports that nobody listens on.
func freePorts(n int) ([]int, error) {
	var open []net.Listener
	defer func() {
		for _, l := range open {
			l.Close()
		}
	}()
	var out []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // returns at once
		if err != nil {
			return nil, err
		}
		open = append(open, l)
		out = append(out, l.Addr().(*net.TCPAddr).Port)
	}
	return out, nil
}
