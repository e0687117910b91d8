package cli

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// Every thread of a process that answers questions beside serving is of the policy that yields to all others, and this
// process is none.
func TestLowPriorityYields(t *testing.T) {
	policy := func(c *exec.Cmd, start func(*exec.Cmd) error) string {
		t.Helper()
		var out bytes.Buffer
		c.Stdout = &out
		if err := start(c); err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "policy" {
				return strings.TrimSpace(value)
			}
		}
		t.Skip("this kernel does not tell the policy of a process")
		return ""
	}
	const idle = "5" // SCHED_IDLE of sched(7)
	if x := policy(exec.CommandContext(t.Context(), "cat", "/proc/self/sched"), startLowPriority); x != idle {
		t.Errorf("the process has policy %s, want %s", x, idle)
	}
	if x := policy(exec.CommandContext(t.Context(), "cat", "/proc/self/sched"), (*exec.Cmd).Start); x == idle {
		t.Error("this process has taken the policy over")
	}
}
