package config

import (
	"bytes"
	"regexp"
	"time"
)

// latencyText is the value of an objective in a line of a file.
var latencyText = regexp.MustCompile(`\blatency:\s*[^\s,}#]+`)

// WithObjectives returns text, which the file was read from, with other latencies for the apps that objectives has by
// name. The rest stays as it is written.
func (f *File) WithObjectives(text []byte, objectives map[string]time.Duration) ([]byte, error) {
	lines := bytes.SplitAfter(text, []byte("\n"))
	for i := range f.Apps {
		d, ok := objectives[f.Apps[i].Name]
		if !ok || Duration(d) == f.Apps[i].SLO.Latency {
			continue
		}
		path := at("apps", i) + ".slo.latency"
		n := f.lines[path] - 1
		if n < 0 || n >= len(lines) || len(latencyText.FindAll(lines[n], 2)) != 1 {
			return nil, f.Problem(path,
				"is written in a way that cannot be changed here: write %v yourself", Duration(d))
		}
		lines[n] = latencyText.ReplaceAll(lines[n], []byte("latency: "+Duration(d).String()))
	}
	out := bytes.Join(lines, nil)
	_, err := Parse(out, f.name)
	return out, err
}
