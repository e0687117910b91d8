package python

import (
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
	for _, id := range below(pid) {
		u.processes++
		s := fieldsOf(id, "status")
		u.memory += s["RssAnon"] + s["VmSwap"] // neither of a file nor shared
	}
	return u
}

// below lists a process and all below it, maxProcesses and one at most.
func below(pid int) []int {
	out := []int{pid}
	for at := 0; at < len(out); at++ {
		if at > maxProcesses {
			return out[:at]
		}
		dir := "/proc/" + strconv.Itoa(out[at]) + "/task"
		tasks, _ := os.ReadDir(dir)
		for _, t := range tasks {
			text, _ := os.ReadFile(dir + "/" + t.Name() + "/children")
			for _, child := range strings.Fields(string(text)) {
				if n, err := strconv.Atoi(child); err == nil {
					out = append(out, n)
				}
			}
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
			log(*p.model.Load(), "killed: it has started more than "+strconv.Itoa(maxProcesses)+" processes")
			p.kill()
		case limit > 0 && u.memory > limit+limit/2:
			log(*p.model.Load(), "killed: it takes "+strconv.FormatInt(u.memory>>20, 10)+" MiB, half as much again as "+
				"process_memory")
			p.kill()
		case limit > 0 && u.memory > limit:
			leaks(u.memory)
		}
	}
}
