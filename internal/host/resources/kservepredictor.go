package resources

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// predictor is the mapping spec.predictor of an InferenceService.
type predictor struct {
	at  *yaml.Node
	err error
}

// read fills in what the predictor says.
func (p *predictor) read(s *Service) error {
	m := valueAt(p.at, "model")
	s.Format, s.Runtime = word(valueAt(m, "modelFormat", "name")), word(valueAt(m, "runtime"))
	s.URI = word(valueAt(m, "storageUri"))
	for _, f := range formats {
		if old := valueAt(p.at, f); old != nil && m == nil {
			s.Format, s.URI = f, word(valueAt(old, "storageUri"))
		}
	}
	// KServe keeps one replica where nothing is said, and none for 0.
	s.Least = p.number("minReplicas", 1)
	s.Most = p.number("maxReplicas", 0)
	if s.Most > 0 && s.Least > s.Most && p.err == nil {
		return fmt.Errorf("line %d: maxReplicas is %d, below minReplicas, which is %d", p.at.Line, s.Most, s.Least)
	}
	s.MaxBatch = p.number("batcher.maxBatchSize", 0)
	if target := p.number("scaleTarget", 0); word(valueAt(p.at, "scaleMetric")) == "rps" {
		s.Demand = float64(target) * float64(max(s.Least, 1))
	}
	return p.err
}

// number reads a whole number from 0, or what holds where nothing is said.
func (p *predictor) number(key string, otherwise int) int {
	n := valueAt(p.at, strings.Split(key, ".")...)
	if n == nil || n.Tag == "!!null" {
		return otherwise
	}
	v, err := strconv.Atoi(word(n))
	if err != nil || v < 0 || v > math.MaxInt32 {
		if p.err == nil {
			p.err = fmt.Errorf("line %d: spec.predictor.%s is %.40q: write a whole number from 0", n.Line, key, word(n))
		}
		return otherwise
	}
	return v
}
