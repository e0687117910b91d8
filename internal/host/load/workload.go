package load

import (
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
	for i := range s.Apps {
		if s.Apps[i].TraceFile == "" {
			continue
		}
		name := s.Apps[i].TraceFile
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(path), name)
		}
		if s.Apps[i].Trace, err = ReadTrace(name); err != nil {
			return nil, err
		}
	}
	return &s, nil
}

// ReadTrace reads a file of arrival times in ms, one per line. An error is of kind fault.Config.
func ReadTrace(path string) ([]serving.Time, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	defer f.Close()
	times, err := workload.ParseTrace(f)
	if err != nil {
		return nil, fault.Errorf(fault.Config, "%s: %w", path, err)
	}
	return times, nil
}
