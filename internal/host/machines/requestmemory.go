package machines

import (
	"math"
	"os"
	"strconv"
	"strings"
)

// memoryShare is the part of the machine's memory that requests may hold: one in so many. Models, their runtime and the
// garbage collector need the rest.
const memoryShare = 2

// RequestMemory is the budget for what requests hold, in bytes: what the configuration says or, if that is 0, a share
// of the machine's memory or of its control group's. It is 0, no bound, where neither is known.
func RequestMemory(configured int64) int64 {
	if configured > 0 {
		return configured
	}
	least := int64(math.MaxInt64)
	for _, path := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if b, err := os.ReadFile(path); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && n > 0 {
				least = min(least, n)
			}
		}
	}
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		least = min(least, memTotal(string(b)))
	}
	if least == math.MaxInt64 {
		return 0
	}
	return least / memoryShare
}

// memTotal reads the machine's memory from /proc/meminfo, in bytes.
func memTotal(text string) int64 {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err == nil && kib > 0 && kib < math.MaxInt64>>10 {
				return kib << 10
			}
		}
	}
	return math.MaxInt64
}
