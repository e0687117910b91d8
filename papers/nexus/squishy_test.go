package nexus

import (
	"bufio"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

const ms = time.Millisecond

// listed makes a batch take as long as the smallest listed one that is no smaller.
func listed(took map[int]time.Duration) func(int) time.Duration {
	return func(b int) time.Duration {
		best, at := time.Duration(math.MaxInt64/4), math.MaxInt
		for size, t := range took {
			if size >= b && size < at {
				best, at = t, size
			}
		}
		return best
	}
}

// table2 is the batching profile of §4.1 (Table 2), of models A, B and C.
func table2(rates ...float64) []Session {
	return []Session{
		{
			Rate: rates[0], Budget: 200 * ms, MaxBatch: 16,
			Latency: listed(map[int]time.Duration{4: 50 * ms, 8: 75 * ms, 16: 100 * ms}),
		},
		{
			Rate: rates[1], Budget: 250 * ms, MaxBatch: 16,
			Latency: listed(map[int]time.Duration{4: 50 * ms, 8: 90 * ms, 16: 125 * ms}),
		},
		{
			Rate: rates[2], Budget: 250 * ms, MaxBatch: 16,
			Latency: listed(map[int]time.Duration{4: 60 * ms, 8: 95 * ms, 16: 125 * ms}),
		},
	}
}

// Nexus §4.1: much of A, B and C takes rate/160, rate/128 and rate/128 machines in batches of 16.
func TestSaturated(t *testing.T) {
	nodes, _, ok := Pack(table2(480, 256, 128), 0)
	if !ok || len(nodes) != 3+2+1 {
		t.Fatalf("%d machines (%v), want 6", len(nodes), ok)
	}
	for _, n := range nodes {
		if len(n.Sessions) != 1 || n.Sessions[0].Batch != 16 {
			t.Errorf("%+v, want a machine of one model in batches of 16", n)
		}
	}
}

// Nexus §4.1, Figure 2b: 64 of A and 32 each of B and C a second. A comes in batches of 8 every 125 ms; four of B fit
// into that, four of C do not.
func TestResidualExample(t *testing.T) {
	s := table2(64, 32, 32)
	nodes, _, ok := Pack(s, 0)
	if !ok || len(nodes) != 2 {
		t.Fatalf("%+v, want two machines", nodes)
	}
	ab, c := nodes[0], nodes[1]
	if len(c.Sessions) != 1 || c.Sessions[0].Session != 2 {
		ab, c = c, ab
	}
	if ab.Duty != 125*ms || len(ab.Sessions) != 2 || ab.Sessions[0] != (NodeSession{0, 8, 64}) ||
		ab.Sessions[1] != (NodeSession{1, 4, 32}) ||
		math.Abs(ab.Occupancy(s)-1) > 1e-9 {
		t.Errorf("the machine of A: %+v, want 8 of A and 4 of B every 125ms", ab)
	}
	if len(c.Sessions) != 1 || c.Sessions[0].Session != 2 {
		t.Errorf("the other machine: %+v, want C alone", c)
	}
}

// released reads a profile of the release, as it does: mean and deviation of a batch, what comes before and after off
// the objective.
func released(t *testing.T, name string, slo time.Duration, rate float64) Session {
	t.Helper()
	f, err := os.Open("testdata/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	us := func(fields []string) time.Duration {
		sum := 0.0
		for _, x := range fields[:2] {
			v, err := strconv.ParseFloat(x, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += v
		}
		return time.Duration(sum * 1e3)
	}
	var took []time.Duration
	for in := bufio.NewScanner(f); in.Scan(); {
		fields := strings.Split(in.Text(), ",")
		switch {
		case len(fields) == 4 && fields[0] != "batch":
			took = append(took, us(fields[1:]))
		case len(fields) == 2 && fields[0] != "mean(us)":
			slo -= us(fields)
		}
	}
	for k := 1; k < len(took); k++ {
		took[k] = max(took[k], took[k-1]) // measured with noise
	}
	return Session{Rate: rate, Budget: slo, MaxBatch: len(took),
		Latency: func(b int) time.Duration { return took[b-1] }}
}

// The release's own test (tests/cpp/scheduler/backend_delegate_test.cpp) with its profiles: within 500 ms, more than
// 298 of VGG-16 a second fill a machine; beside 150 of them there is room for up to 125 of VGG-Face within 300 ms, but
// not for 150.
func TestReleasedProfiles(t *testing.T) {
	for rate, full := range map[float64]bool{
		50: false, 100: false, 150: false, 200: false, 250: false, 300: true, 400: true, 500: true,
	} {
		s := []Session{released(t, "vgg16", 500*ms, rate)}
		nodes, _, ok := Pack(s, 0)
		if !ok || (nodes[0].Occupancy(s) > 0.999) != full {
			t.Errorf("%v of VGG-16 a second: %+v, occupied %.3f, want full: %v", rate, nodes, nodes[0].Occupancy(s),
				full)
		}
	}
	for rate, beside := range map[float64]bool{50: true, 100: true, 125: true, 150: false, 200: false, 250: false} {
		s := []Session{released(t, "vgg16", 500*ms, 150), released(t, "vgg_face", 300*ms, rate)}
		if nodes, _, ok := Pack(s, 0); !ok || (len(nodes) == 1) != beside {
			t.Errorf("%v of VGG-Face a second beside 150 of VGG-16: %+v, want them together: %v", rate, nodes, beside)
		}
	}
}

// Random sessions: all load is carried, every batch is in time and fits its cycle, and with few sessions the machines
// are at most one more than the fewest by trying every way to put them together.
func TestPackAgainstAll(t *testing.T) {
	same, total := 0, 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		sessions := make([]Session, 1+rng.IntN(6))
		for k := range sessions {
			base, each := time.Duration(1+rng.IntN(20))*ms, time.Duration(1+rng.IntN(8000))*time.Microsecond
			sessions[k] = Session{Rate: 0.1 + 200*rng.Float64()*rng.Float64(),
				Budget: 2*(base+each) + time.Duration(rng.IntN(300))*ms, MaxBatch: 1 + rng.IntN(32),
				Latency: func(b int) time.Duration {
					return base + time.Duration(b)*each
				}, Memory: func(b int) int64 { return int64(10 + b) }}
		}
		const memory = 80
		nodes, _, ok := Pack(sessions, memory)
		if !ok {
			t.Fatalf("seed %d: nothing packed", seed)
		}
		rates := make([]float64, len(sessions))
		var rests []Node
		fulls := 0
		for _, n := range nodes {
			if n.busy(sessions) > n.Duty {
				t.Fatalf("seed %d: %+v is busy for %v", seed, n, n.busy(sessions))
			}
			for _, p := range n.Sessions {
				s := &sessions[p.Session]
				rates[p.Session] += p.Rate
				if float64(p.Batch) < p.Rate*n.Duty.Seconds()*(1-1e-6) || p.Batch > s.MaxBatch ||
					s.Latency(p.Batch)+n.Duty > s.Budget+1 {
					t.Fatalf("seed %d: %+v on %+v of %+v", seed, p, n, s)
				}
			}
			if len(n.Sessions) == 1 && n.Duty == n.busy(sessions) &&
				n.Sessions[0].Batch == sessions[n.Sessions[0].Session].saturatingBatch() {
				fulls++
			}
		}
		for k, r := range rates {
			if math.Abs(r-sessions[k].Rate) > 1e-6*sessions[k].Rate {
				t.Fatalf("seed %d: session %d gets %v of %v", seed, k, r, sessions[k].Rate)
			}
			s := &sessions[k]
			b := s.saturatingBatch()
			full := float64(b) / s.Latency(b).Seconds()
			if left := s.Rate - full*math.Floor(s.Rate/full); left > 1e-9*s.Rate {
				rests = append(rests, s.residualNode(k, left))
			}
		}
		fewest := len(rests)
		var try func(k int, groups []Node)
		try = func(k int, groups []Node) {
			if len(groups) >= fewest && k < len(rests) {
				return
			}
			if k == len(rests) {
				fewest = min(fewest, len(groups))
				return
			}
			for g := range groups {
				if n, ok := merge(sessions, groups[g], rests[k], memory); ok {
					was := groups[g]
					groups[g] = n
					try(k+1, groups)
					groups[g] = was
				}
			}
			try(k+1, append(groups[:len(groups):len(groups)], rests[k]))
		}
		try(0, nil)
		got := len(nodes) - fulls
		if total++; got <= fewest {
			same++
		}
		if got > fewest+1 {
			t.Errorf("seed %d: %d machines for what is left, %d do", seed, got, fewest)
		}
	}
	t.Logf("as few machines as can be in %d of %d", same, total)
}
