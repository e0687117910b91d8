package worlds

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

//go:embed data/traces.csv
var tracesCSV string

// series is a real load: gaps between arrivals in ms, or queries in steps of equal length.
type series struct {
	trace   string
	gaps    bool
	numbers []float64
}

// codeTrace is the only one with the arrivals themselves.
const codeTrace = "azure-code"

// readTraces reads the embedded traces, in the order of the file.
func readTraces() (out []series) {
	head := true
	for _, line := range strings.Split(strings.TrimSpace(tracesCSV), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		if head {
			head = false
			continue
		}
		f := strings.Split(line, ",")
		s := series{trace: f[0], gaps: f[0] == codeTrace}
		for _, word := range strings.Fields(f[2]) {
			x, err := strconv.ParseFloat(word, 64)
			if err != nil {
				panic(fmt.Sprintf("worlds: data/traces.csv: %v", err))
			}
			s.numbers = append(s.numbers, x)
		}
		out = append(out, s)
	}
	return out
}

// traces chooses a trace, and a series of it for each app in turn.
func (g *generator) traces() []series {
	var names []string
	by := make(map[string][]series)
	for _, s := range readTraces() {
		if by[s.trace] == nil {
			names = append(names, s.trace)
		}
		by[s.trace] = append(by[s.trace], s)
	}
	return by[names[g.rng.IntN(len(names))]]
}
