package ramsis

import (
	"fmt"
	"slices"
	"time"
)

// modelSet says which models of a task there are.
type modelSet string

const (
	pareto modelSet = ""          // the Pareto front: 9 for images (Figure 3), 5 for text (Figure 9)
	dense  modelSet = "60 models" // the front with interpolated models (§7.3.2)
	few    modelSet = "3 models"  // appendix E
)

// accuracyStep is the step of accuracy between the models of dense, in points (§7.3.2).
const accuracyStep = 0.5

// models returns the models of a setup, the fastest first.
func (s setup) models() ([]model, error) {
	list, err := models(s.task)
	if err != nil {
		return nil, err
	}
	switch s.modelSet {
	case dense:
		return interpolated(list), nil
	case few:
		keep := []string{"shufflenet_v2_x0_5", "efficientnet_b2", "efficientnet_v2_s"}
		return slices.DeleteFunc(list, func(m model) bool { return !slices.Contains(keep, m.name) }), nil
	}
	return list, nil
}

// interpolated returns list with further models on the straight lines between neighbours, one for every accuracyStep:
// 60 in all for images.
func interpolated(list []model) []model {
	var out []model
	for i, m := range list {
		out = append(out, m)
		if i+1 == len(list) {
			break
		}
		next := list[i+1]
		for a := m.accuracy + accuracyStep; a < next.accuracy-1e-9; a += accuracyStep {
			share := (a - m.accuracy) / (next.accuracy - m.accuracy)
			x := model{name: fmt.Sprintf("%.3f", a), accuracy: a}
			for b := range x.took {
				x.took[b] = m.took[b] + time.Duration(share*float64(next.took[b]-m.took[b]))
			}
			out = append(out, x)
		}
	}
	return out
}
