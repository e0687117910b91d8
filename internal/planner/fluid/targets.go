package fluid

import (
	"math"

	"github.com/sluice-serving/sluice/serving"
)

// reachTargets has targets that no machine can keep ask for the most accurate variants that are in time: machines that
// are bought for the rest of such a target change nothing. Whether a target is missed is said by the target itself.
func (m *problem) reachTargets() {
	for a := range m.apps {
		x := &m.apps[a]
		if x.closed || x.allowed >= 1 {
			continue
		}
		least := 0.0
		for c := range x.classes {
			loss := 0.0
			for _, s := range m.spec.Apps[a].Stages {
				if m.stages[s].fan > 0 {
					loss += m.leastLoss(s, c)
				}
			}
			least += x.classes[c].share * loss
		}
		x.allowed = max(x.allowed, least)
	}
}

// leastLoss is the loss of the most accurate variant of a stage that is in time for a class; 0 where none is.
func (m *problem) leastLoss(s serving.StageID, c int) float64 {
	least := math.Inf(1)
	for k := range m.kinds {
		for j := range m.kinds[k].options {
			if o := &m.kinds[k].options[j]; o.stage == s && c < len(o.rates) && o.rates[c] > 0 {
				least = min(least, o.loss)
			}
		}
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return least
}

// short is by how much the answers of a candidate are less accurate than targets ask for, in its trial: by app, in
// parts of the best accuracy. Nil without a trial.
func (m *problem) short(c *candidate) []float64 {
	if c.tried == nil {
		return nil
	}
	out := make([]float64, len(m.apps))
	for a := range m.apps {
		x := &m.apps[a]
		best := m.spec.BestAccuracy(serving.AppID(a))
		if x.closed || x.allowed >= 1 || best <= 0 || a >= len(c.tried.Accurate) || c.tried.Accurate[a] == 0 {
			continue
		}
		out[a] = max(1-x.allowed-c.tried.Accurate[a]/best, 0)
	}
	return out
}

// keepsTargets tells whether the answers of a candidate are as accurate as targets ask for, in its trial, or as those
// of the largest machines that were tried.
func (s *search) keepsTargets(c *candidate) bool {
	for a, short := range s.m.short(c) {
		most := 0.0
		if a < len(s.unkept) {
			most = s.unkept[a]
		}
		if short > most+targetChance {
			return false
		}
	}
	return true
}

// targetChance is the part of the best accuracy that a trial may be short of a target by chance.
const targetChance = 0.003
