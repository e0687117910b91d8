package workload

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/sluice-serving/sluice/serving"
)

// ParseRates parses the rate function of a command line: "200" is a constant rate in queries/s; "0:50,10:200,20:50"
// begins with 50, has 200 from 10 s on and 50 again from 20 s on. Errors name the segment.
func ParseRates(text string) ([]Segment, error) {
	if !strings.Contains(text, ":") {
		rate, err := parseNumber(text, MaxRate)
		if err != nil {
			return nil, fmt.Errorf("rate: %w", err)
		}
		return []Segment{{Rate: rate}}, nil
	}
	parts := strings.Split(text, ",")
	if len(parts) > MaxSegments {
		return nil, fmt.Errorf("%d segments, want at most %d", len(parts), MaxSegments)
	}
	out := make([]Segment, 0, len(parts))
	for i, p := range parts {
		at, rate, ok := strings.Cut(p, ":")
		if !ok {
			return nil, fmt.Errorf("segment %d is %q, want SECONDS:RATE", i+1, p)
		}
		var g Segment
		var err error
		if g.AtS, err = parseNumber(at, MaxSeconds); err != nil {
			return nil, fmt.Errorf("segment %d: seconds: %w", i+1, err)
		}
		if g.Rate, err = parseNumber(rate, MaxRate); err != nil {
			return nil, fmt.Errorf("segment %d: rate: %w", i+1, err)
		}
		if i == 0 && g.AtS != 0 {
			return nil, fmt.Errorf("segment 1 starts at %v s, want 0", g.AtS)
		}
		if i > 0 && g.AtS <= out[i-1].AtS {
			return nil, fmt.Errorf("segment %d starts at %v s, want a time after %v s", i+1, g.AtS, out[i-1].AtS)
		}
		out = append(out, g)
	}
	return out, nil
}

// ParseRange parses START[:END[:STEP]], the form of perf_analyzer's --request-rate-range. It returns the rates START,
// START+STEP and so on up to END, in queries/s. Without END there is one; STEP is 1 by default.
func ParseRange(text string) ([]float64, error) {
	const most = 10_000
	parts := strings.Split(text, ":")
	if len(parts) > 3 {
		return nil, fmt.Errorf("%q has %d parts, want START[:END[:STEP]]", text, len(parts))
	}
	v := [3]float64{0, 0, 1}
	for i, p := range parts {
		var err error
		if v[i], err = parseNumber(p, MaxRate); err != nil {
			return nil, fmt.Errorf("%s: %w", [...]string{"start", "end", "step"}[i], err)
		}
	}
	start, end, step := v[0], v[1], v[2]
	if start <= 0 {
		return nil, fmt.Errorf("start is %v, want more than 0", start)
	}
	if len(parts) == 1 {
		return []float64{start}, nil
	}
	if end < start {
		return nil, fmt.Errorf("end is %v, want at least the start of %v", end, start)
	}
	if step <= 0 {
		return nil, fmt.Errorf("step is %v, want more than 0", step)
	}
	n := math.Floor((end-start)/step+1e-9) + 1
	if n > most {
		return nil, fmt.Errorf("%q means %.0f rates, want at most %d", text, n, most)
	}
	out := make([]float64, int(n))
	for i := range out {
		out[i] = start + float64(i)*step
	}
	return out, nil
}

func parseNumber(text string, limit float64) (float64, error) {
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", text)
	}
	if !(f >= 0 && f <= limit) {
		return 0, fmt.Errorf("%v is outside [0, %g]", f, limit)
	}
	return f, nil
}

// ParseLogNormal parses MEDIAN:SPREAD:MOST: a log-normal distribution whose logarithm has the deviation SPREAD.
func ParseLogNormal(text string) (ItemsSpec, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return ItemsSpec{}, fmt.Errorf("%q has %d parts, want MEDIAN:SPREAD:MOST", text, len(parts))
	}
	var v [3]float64
	for i, p := range parts {
		var err error
		if v[i], err = parseNumber(p, MaxItems); err != nil {
			return ItemsSpec{}, fmt.Errorf("%s: %w", [...]string{"median", "spread", "most"}[i], err)
		}
	}
	if v[0] <= 0 {
		return ItemsSpec{}, fmt.Errorf("median: is %v, want more than 0", v[0])
	}
	out := ItemsSpec{Distribution: "lognormal", Mu: math.Log(v[0]), Sigma: v[1], Max: int32(v[2])}
	_, err := out.Build()
	return out, err
}

// MaxTraceLines is the most arrivals of a trace file.
const MaxTraceLines = 50_000_000

// ParseTrace parses arrival times in milliseconds, one to a line, in rising order. Empty lines and lines that begin
// with # are skipped. Errors name the line.
func ParseTrace(r io.Reader) (out []serving.Time, err error) {
	err = eachLine(r, "trace", func(text string) error {
		ms, err := parseNumber(text, MaxSeconds*1e3)
		if err != nil {
			return err
		}
		t := serving.Time(math.Round(ms * 1e6))
		if n := len(out); n > 0 && t < out[n-1] {
			return fmt.Errorf("%v ms is earlier than the line before; sort the trace", ms)
		}
		out = append(out, t)
		return nil
	})
	return out, err
}

// eachLine calls take for the lines of a file of numbers. Errors name the line.
func eachLine(r io.Reader, what string, take func(text string) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 4096), 4096)
	line, taken := 0, 0
	for s.Scan() {
		line++
		text := strings.TrimSpace(strings.TrimPrefix(s.Text(), "\ufeff")) // which editors put before the first line
		if text == "" || text[0] == '#' {
			continue
		}
		if taken == MaxTraceLines {
			return fmt.Errorf("%s line %d: more than %d entries; split the file", what, line, MaxTraceLines)
		}
		taken++
		if err := take(text); err != nil {
			return fmt.Errorf("%s line %d: %w", what, line, err)
		}
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("%s line %d: %w", what, line+1, err)
	}
	return nil
}

// ParseList parses sizes or lengths of queries, one to a line: whole numbers from 1 to MaxItems. Empty lines and lines
// that begin with # are skipped. Errors name the line.
func ParseList(r io.Reader) (out []int32, err error) {
	err = eachLine(r, "list", func(text string) error {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 1 || n > MaxItems {
			return fmt.Errorf("%q is not a whole number from 1 to %d", text, MaxItems)
		}
		out = append(out, int32(n))
		return nil
	})
	return out, err
}
