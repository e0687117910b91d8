package kubelet

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
)

// ip runs the command of iproute2.
func ip(args ...string) error {
	out, err := exec.CommandContext(context.Background(), "ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// attach makes a network namespace with an address, joined to a bridge of this machine.
func attach(namespace, bridge string, address netip.Addr, within netip.Prefix) error {
	b := address.As4()
	outside := fmt.Sprintf("sv%x", b)
	_ = ip("netns", "del", namespace) // of a run before
	_ = ip("link", "del", outside)
	inside := func(args ...string) []string { return append([]string{"-n", namespace}, args...) }
	for _, args := range [][]string{
		{"netns", "add", namespace},
		{"link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", namespace},
		{"link", "set", outside, "master", bridge, "up"},
		inside("link", "set", "lo", "up"),
		inside("addr", "add", netip.PrefixFrom(address, within.Bits()).String(), "dev", "eth0"),
		inside("link", "set", "eth0", "up"),
		inside("route", "add", "default", "via", within.Addr().Next().String()),
	} {
		if err := ip(args...); err != nil {
			return err
		}
	}
	return nil
}

// detach removes it.
func detach(namespace string) { _ = ip("netns", "del", namespace) } // the next of that name removes it otherwise
