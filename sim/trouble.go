package sim

import (
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Trouble is how a worker misbehaves: towards the batches and loads that begin in that time.
type Trouble struct {
	Slow      float64 // factor on the time of a batch; 0 for none
	Breaks    bool    // batches fail, or their answers are wrong, which is the same to the engine
	Hangs     bool    // batches never end: their instance is lost after engine.RunLimit
	LoadHangs bool    // loads never end: their instance is lost after Config.LoadLimit
}

// Pause is a time in which the engine is not called, since its machine was suspended or its clock jumped.
type Pause struct{ At, Until serving.Time }

func (s *simulation) troubleOf(now serving.Time, w serving.WorkerID) Trouble {
	if s.Trouble == nil {
		return Trouble{}
	}
	return s.Trouble(now, w)
}

// trouble has a batch that begins on an instance suffer from the worker's trouble.
func (s *simulation) trouble(now serving.Time, i *fleet.Instance, r *run, d *engine.Decision) {
	x := s.troubleOf(now, i.Worker())
	r.breaks = r.breaks || x.Breaks
	if x.Slow > 0 {
		r.balloon *= x.Slow
	}
	if x.Hangs {
		r.hangs = true
		s.happens(now.Add(engine.RunLimit(s.Spec, d)+time.Nanosecond), engine.NewInstanceLost(d.Instance))
	}
}

// afterPause returns when the engine is called for what happens at a time.
func (s *simulation) afterPause(now serving.Time) serving.Time {
	for len(s.Pauses) > 0 && s.Pauses[0].Until <= s.result.End {
		s.Pauses = s.Pauses[1:]
	}
	for k := range s.Pauses {
		if p := &s.Pauses[k]; p.At <= now && now < p.Until {
			return p.Until
		}
	}
	return now
}
