package load

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/files"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// largestWorkload bounds a workload file, in bytes; traces are in files of their own.
const largestWorkload = 1 << 20

// ReadWorkload reads a workload file (docs/workload.md). Relative paths of traces start from its folder. An error is of
// kind fault.Config.
func ReadWorkload(path string) (*workload.Spec, error) {
	data, err := files.Read(path, largestWorkload)
	if err != nil {
		return nil, err
	}
	d := yaml.NewDecoder(strings.NewReader(string(data)))
	d.KnownFields(true)
	var s workload.Spec
	if err := d.Decode(&s); err != nil {
		return nil, fault.Errorf(fault.Config, "%s: %w", path, err)
	}
	beside := func(name string) string {
		if filepath.IsAbs(name) {
			return name
		}
		return filepath.Join(filepath.Dir(path), name)
	}
	for i := range s.Apps {
		x := &s.Apps[i]
		if x.TraceFile != "" {
			if x.Trace, err = ReadTrace(beside(x.TraceFile)); err != nil {
				return nil, err
			}
		}
		for _, drawn := range [...]*workload.ItemsSpec{&x.Items, &x.Lengths} {
			if drawn.File != "" {
				if drawn.Listed, err = ReadList(beside(drawn.File)); err != nil {
					return nil, err
				}
			}
		}
	}
	return &s, nil
}

// ReadTrace reads a file of arrival times in ms, one per line. An error is of kind fault.Config.
func ReadTrace(path string) ([]serving.Time, error) { return readLines(path, workload.ParseTrace) }

// ReadList reads a file of sizes or lengths of queries, one per line. An error is of kind fault.Config.
func ReadList(path string) ([]int32, error) { return readLines(path, workload.ParseList) }

func readLines[T any](path string, parse func(io.Reader) ([]T, error)) ([]T, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	defer f.Close()
	out, err := parse(f)
	if err != nil {
		return nil, fault.Errorf(fault.Config, "%s: %w", path, err)
	}
	return out, nil
}
