package python

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"
)

// usage is what a worker and the processes that it has started take.
type usage struct {
	memory    int64 // bytes that are theirs alone
	processes int
}

// usageOf adds up a process and all below it, as far as the system says. It stops counting at maxProcesses.
func usageOf(pid int) (u usage) {
	todo := []int{pid}
	for len(todo) > 0 && u.processes <= maxProcesses {
		id := todo[0]
		todo = todo[1:]
		u.processes++
		u.memory += anonymous(id)
		tasks, _ := os.ReadDir("/proc/" + strconv.Itoa(id) + "/task")
		for _, t := range tasks {
			text, _ := os.ReadFile("/proc/" + strconv.Itoa(id) + "/task/" + t.Name() + "/children")
			for _, child := range strings.Fields(string(text)) {
				if n, err := strconv.Atoi(child); err == nil {
					todo = append(todo, n)
				}
			}
		}
	}
	return u
}

// anonymous returns a process's memory that is neither of a file nor shared, in bytes.
func anonymous(pid int) (out int64) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		name, value, _ := strings.Cut(string(line), ":")
		if name != "RssAnon" && name != "VmSwap" {
			continue
		}
		if f := strings.Fields(value); len(f) == 2 {
			n, _ := strconv.ParseInt(f[0], 10, 64)
			out += n << 10
		}
	}
	return out
}

// watch looks at a process until it has ended. leaks is called when it is above the limit of memory; it is killed where
// it is far above, or has too many processes.
func (p *process) watch(limit int64, leaks func(int64), log func(model, line string)) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-tick.C:
		}
		u := usageOf(p.guardian.Pid)
		switch {
		case u.processes > maxProcesses:
			log(p.model, "killed: it has started more than "+strconv.Itoa(maxProcesses)+" processes")
			p.kill()
		case limit > 0 && u.memory > limit+limit/2:
			log(p.model, "killed: it takes "+strconv.FormatInt(u.memory>>20, 10)+" MiB, half as much again as "+
				"process_memory")
			p.kill()
		case limit > 0 && u.memory > limit:
			leaks(u.memory)
		}
	}
}
