package proteus

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// trace is a load: the number of queries of each family in every second.
type trace struct {
	name   string
	counts [][]int // by AppID, then by second
	folder string  // with the authors' arrival times; empty draws them from counts
	// gaps are those between the queries of a family, whose rate is the mean of every ten seconds; nil draws arrival
	// times from counts
	gaps func() (workload.Gaps, error)
}

// withGaps returns the trace with other gaps between queries.
func (t *trace) withGaps(name string, gaps func() (workload.Gaps, error)) *trace {
	return &trace{name: t.name + ", " + name, counts: t.counts, gaps: gaps}
}

// level returns the trace with the mean of each family in every second.
func (t *trace) level() *trace {
	out := &trace{name: t.name + ", level", counts: make([][]int, len(t.counts))}
	for a, rate := range t.mean() {
		for s := range t.seconds() {
			out.counts[a] = append(out.counts[a], int(rate*float64(s+1))-int(rate*float64(s)))
		}
	}
	return out
}

// renewals returns the queries of a renewal process for each family.
func (t *trace) renewals(seed uint64) ([]workload.Arrival, error) {
	var out []workload.Arrival
	for a := range t.counts {
		var corners []workload.Point
		for k, rates := range t.tenSecondWindows() {
			corners = append(corners, workload.Point{At: float64(k * windowSeconds), Rate: rates[a]})
		}
		r := workload.Rand(seed, fmt.Sprintf("renewals %s %d", t.name, a))
		more, err := renewals(serving.AppID(a), corners, t.gaps, r, serving.Time(t.span()))
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	slices.SortStableFunc(out, func(x, y workload.Arrival) int { return cmp.Compare(x.At, y.At) })
	return out, nil
}

// renewals returns the queries of an app before end: those of a renewal process with a rate by corners.
func renewals(a serving.AppID, corners []workload.Point, gaps func() (workload.Gaps, error), r *rand.Rand,
	end serving.Time) (out []workload.Arrival, err error) {
	rate, err := workload.NewRate(corners, false)
	if err != nil {
		return nil, err
	}
	g, err := gaps()
	if err != nil {
		return nil, err
	}
	p := workload.NewProcess(rate, g, r)
	for at, ok := p.NextTime(); ok && at < end; at, ok = p.NextTime() {
		out = append(out, query(at, a))
	}
	return out, nil
}

// readTraces reads the embedded traces, in the order of the file.
func readTraces(spec *serving.Spec, folder string) ([]*trace, error) {
	rows, err := data.Records("arrivals.csv", "trace", "family", "queries_by_second")
	if err != nil {
		return nil, err
	}
	var out []*trace
	for n, r := range rows {
		a := indexOf(spec.Apps, func(a *serving.App) bool { return a.Name == r[1] })
		if a < 0 {
			return nil, fmt.Errorf("data/arrivals.csv: line %d: family %q is not in the profile", n+2, r[1])
		}
		if len(out) == 0 || out[len(out)-1].name != r[0] {
			t := &trace{name: r[0], counts: make([][]int, len(spec.Apps))}
			if folder != "" {
				t.folder = filepath.Join(folder, r[0])
			}
			out = append(out, t)
		}
		t := out[len(out)-1]
		for _, x := range strings.Fields(r[2]) {
			c, err := strconv.Atoi(x)
			if err != nil || c < 0 {
				return nil, fmt.Errorf("data/arrivals.csv: line %d: %q is no count", n+2, x)
			}
			t.counts[a] = append(t.counts[a], c)
		}
	}
	return out, nil
}

// seconds returns the length of the trace.
func (t *trace) seconds() int {
	n := 0
	for _, c := range t.counts {
		n = max(n, len(c))
	}
	return n
}

func (t *trace) span() time.Duration { return time.Duration(t.seconds()) * time.Second }

// total returns the number of queries.
func (t *trace) total() int {
	n := 0
	for _, c := range t.counts {
		for _, x := range c {
			n += x
		}
	}
	return n
}

// windows returns the mean rates of consecutive windows of width seconds, by AppID in queries/s. The last may be
// shorter.
func (t *trace) windows(width int) [][]float64 {
	var out [][]float64
	for from := 0; from < t.seconds(); from += width {
		rates := make([]float64, len(t.counts))
		n := min(width, t.seconds()-from)
		for a, c := range t.counts {
			for s := from; s < min(from+n, len(c)); s++ {
				rates[a] += float64(c[s]) / float64(n)
			}
		}
		out = append(out, rates)
	}
	return out
}

// tenSecondWindows returns the windows of ten seconds. As in a run, a remainder of less than five seconds has no
// window.
func (t *trace) tenSecondWindows() [][]float64 { return t.windows(windowSeconds)[:t.windowCount()] }

func (t *trace) windowCount() int { return max(1, (t.seconds()+windowSeconds/2)/windowSeconds) }

// mean returns the mean rates over the whole trace, by AppID in queries/s.
func (t *trace) mean() []float64 { return t.windows(t.seconds())[0] }

// peak returns the rates of the window with the most queries, by AppID in queries/s.
func (t *trace) peak(width int) []float64 {
	return slices.MaxFunc(t.windows(width), func(a, b []float64) int {
		if reproduce.Sum(a) < reproduce.Sum(b) {
			return -1
		}
		return 1
	})
}

// scaled returns the trace with every count multiplied by a factor. Fractions are rounded up or down at random.
func (t *trace) scaled(name string, by float64) *trace {
	r := workload.Rand(1, "scale "+name)
	out := &trace{name: name, counts: make([][]int, len(t.counts))}
	for a, c := range t.counts {
		for _, x := range c {
			y := float64(x) * by
			n := int(y)
			if r.Float64() < y-float64(n) {
				n++
			}
			out.counts[a] = append(out.counts[a], n)
		}
	}
	return out
}

// arrivals returns the queries in order. Within a second they arrive at independent uniform times, as those of a
// Poisson process with a given count do. The authors drew theirs in the same way.
func (t *trace) arrivals(seed uint64) ([]workload.Arrival, error) {
	if t.gaps != nil {
		return t.renewals(seed)
	}
	var out []workload.Arrival
	for a, c := range t.counts {
		if t.folder != "" {
			if err := t.read(&out, serving.AppID(a)); err != nil {
				return nil, err
			}
			continue
		}
		r := workload.Rand(seed, fmt.Sprintf("arrivals %s %d", t.name, a))
		for s, n := range c {
			for range n {
				within := serving.Time(r.Int64N(int64(time.Second)))
				out = append(out, query(serving.Time(s)*serving.Time(time.Second)+within, serving.AppID(a)))
			}
		}
	}
	slices.SortStableFunc(out, func(x, y workload.Arrival) int { return int(x.At - y.At) })
	return out, nil
}

func query(at serving.Time, a serving.AppID) workload.Arrival {
	q := reproduce.Query(a)
	q.At = at
	return q
}

func (t *trace) read(out *[]workload.Arrival, a serving.AppID) error {
	paths, err := filepath.Glob(filepath.Join(t.folder, "*.arrivals_ms.txt.gz"))
	if err != nil || int(a) >= len(paths) {
		return fmt.Errorf("%s holds %d files FAMILY.arrivals_ms.txt.gz, want one for each of the %d families", t.folder,
			len(paths), len(t.counts))
	}
	slices.Sort(paths)
	f, err := os.Open(paths[a])
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", paths[a], err)
	}
	lines := bufio.NewScanner(z)
	for n := 1; lines.Scan(); n++ {
		ms, err := strconv.ParseFloat(strings.TrimSpace(lines.Text()), 64)
		if err != nil || ms < 0 || ms > 1e9 {
			return fmt.Errorf("%s: line %d: %q is no time in ms", paths[a], n, lines.Text())
		}
		*out = append(*out, query(serving.Time(ms*float64(time.Millisecond)), a))
	}
	return lines.Err()
}
