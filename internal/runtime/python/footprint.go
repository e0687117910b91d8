package python

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"github.com/sluice-serving/sluice/dataplane"
)

// Memory that a model takes is measured so that it does not depend on what else runs: of each of its processes what is
// theirs alone, with the most that it was while the model warmed up (a worker counts anew before that), and once for
// all of them the libraries that they have mapped, which other models of the same framework may share. Where the system
// says nothing of it, nobody knows.

var _ dataplane.Footprint = (*instance)(nil)

// Footprint implements dataplane.Footprint: the memory of all processes of the instance.
func (in *instance) Footprint() (int64, bool) {
	in.mu.RLock()
	defer in.mu.RUnlock()
	total := int64(0)
	for _, p := range in.pools { // any order: they are added up
		took, known := p.footprint()
		if !known {
			return 0, false
		}
		total += took
	}
	return total, len(in.pools) > 0
}

// footprint is the memory of the processes of one variant, in bytes.
func (p *pool) footprint() (int64, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	own, files := int64(0), int64(0)
	for x, s := range p.held { // any order
		if s.ended {
			continue
		}
		a, b, known := x.footprint()
		if !known {
			return 0, false
		}
		own, files = own+a, max(files, b)
	}
	return own + files, own > 0
}

// footprint is what a worker with its guardian and all that it has started takes: memory of their own, and files that
// they have mapped, in bytes.
func (p *process) footprint() (own, files int64, known bool) {
	shared := int64(0) // with the server: the tensors
	for _, pid := range below(p.guardian.Pid) {
		s := fieldsOf(pid, "status")
		if s == nil {
			continue // it has ended
		}
		private, ok := int64(0), false
		if rollup := fieldsOf(pid, "smaps_rollup"); rollup != nil {
			private, ok = rollup["Pss_Anon"] // pages that a fork has left shared count once
		}
		if !ok {
			private, ok = s["RssAnon"]
		}
		known = known || ok
		own += private + s["VmSwap"] + max(0, s["VmHWM"]-s["VmRSS"])
		shared, files = max(shared, s["RssShmem"]), max(files, s["RssFile"])
	}
	return own + shared, files, known
}

// fieldsOf reads a file of proc(5) with lines such as "VmRSS: 12 kB", in bytes; nil where there is none.
func fieldsOf(pid int, file string) map[string]int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + file)
	if err != nil {
		return nil
	}
	out := make(map[string]int64)
	for line := range bytes.Lines(text) {
		name, value, _ := strings.Cut(string(line), ":")
		if f := strings.Fields(value); len(f) == 2 && f[1] == "kB" {
			if n, err := strconv.ParseInt(f[0], 10, 64); err == nil {
				out[name] = n << 10
			}
		}
	}
	return out
}
