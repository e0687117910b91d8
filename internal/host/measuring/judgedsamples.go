package measuring

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sluice-serving/sluice/internal/measure/loadgen"
	"github.com/sluice-serving/sluice/internal/measure/samples"
	"github.com/sluice-serving/sluice/tensor"
)

// judgedSamples are samples to judge variants with: a folder of files, or those that `sluice load --samples` sends.
type judgedSamples struct {
	folder *samples.Folder
	sent   *loadgen.Samples // nil for a folder of files
	most   int
}

func openJudged(dir string, most int) (*judgedSamples, error) {
	if _, err := os.Stat(filepath.Join(dir, "samples.json")); err == nil {
		sent, err := loadgen.LoadSamples(dir)
		return &judgedSamples{sent: sent, most: most}, err
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	folder, err := samples.Open(dir, most)
	return &judgedSamples{folder: folder}, err
}

func (s *judgedSamples) close() {
	if s.folder != nil {
		_ = s.folder.Close()
	}
}

func (s *judgedSamples) len() int {
	if s.sent != nil {
		return min(s.sent.Count, s.most)
	}
	return len(s.folder.Samples)
}

// at is the place of sample k among those that are sent: the used ones are evenly spread.
func (s *judgedSamples) at(k int) int { return k * s.sent.Count / s.len() }

func (s *judgedSamples) labelled() bool {
	if s.sent != nil {
		return s.sent.Labelled()
	}
	return s.folder.Labelled()
}

func (s *judgedSamples) sample(k int) samples.Sample {
	if s.sent != nil {
		return samples.Sample{File: fmt.Sprintf("samples.json#%d", s.at(k))}
	}
	return s.folder.Samples[k]
}

func (s *judgedSamples) inputs(k int, specs []tensor.Spec, batched bool) ([]tensor.Tensor, error) {
	if s.sent != nil {
		return s.sent.Tensors(s.at(k), 1), nil
	}
	return s.folder.Inputs(k, specs, batched)
}
