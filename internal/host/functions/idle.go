package functions

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/host/store"
	"github.com/sluice-serving/sluice/serving"
)

const (
	// idleAtOnce is the number of apps whose idle times are read from the engine in one call. Queries wait during a
	// call.
	idleAtOnce = 16
	// idleFor is the age at which learned idle times are removed. No rule looks back further.
	idleFor = 7 * 24 * time.Hour
)

// IdleTimes keeps the idle times that a server learns of its apps, functions and others, in its store, by the apps'
// names. It is not safe for concurrent use.
type IdleTimes struct {
	store *store.Functions
	found map[string]idleRecord
	saved map[string]idleMark
}

// idleRecord is the stored record of an app.
type idleRecord struct {
	Saved  time.Time     `json:"saved"`
	Idle   time.Duration `json:"idle_ns"` // since when the app was idle at that time
	Memory []byte        `json:"memory"`
}

// idleMark is the state of an app when it was saved. It is saved again when this has changed.
type idleMark struct {
	app   serving.AppID
	calls int
	idle  serving.Time
}

// OpenIdleTimes reads the stored records. It removes records that are too old or cannot be read; lost has an error for
// each of the latter.
func OpenIdleTimes(s *store.Functions, now time.Time) (x *IdleTimes, lost []error, err error) {
	x = &IdleTimes{store: s, found: make(map[string]idleRecord), saved: make(map[string]idleMark)}
	gone := make(map[string][]byte)
	err = s.Each(store.IdleTable, func(name string, value []byte) error {
		var r idleRecord
		if err := json.Unmarshal(value, &r); err != nil || r.Idle < 0 || r.Saved.IsZero() {
			gone[name] = nil
			lost = append(lost, fmt.Errorf("idle times of %q are damaged and left out: %.100q", name, value))
		} else if now.Sub(r.Saved) > idleFor {
			gone[name] = nil
		} else {
			x.found[name] = r
		}
		return nil
	})
	if err == nil && len(gone) > 0 {
		err = s.Keep(store.IdleTable, gone)
	}
	return x, lost, err
}

// Recall returns the stored idle times of the open apps of a spec, those of each app only once. read decodes a record;
// records that it refuses are left out, with its error in lost.
func (x *IdleTimes) Recall(spec *serving.Spec, now time.Time, read func(*engine.Recalled) error) (out []engine.Recalled,
	lost []error) {
	for a := range spec.Apps {
		app := &spec.Apps[a]
		r, ok := x.found[app.Name]
		if !ok || app.Closed {
			continue
		}
		delete(x.found, app.Name)
		x.saved[app.Name] = idleMark{app: serving.AppID(a)} // marks the record as existing
		older := max(now.Sub(r.Saved), 0)
		one := engine.Recalled{App: serving.AppID(a), Memory: r.Memory, Older: older, Idle: older + r.Idle}
		if err := read(&one); err != nil {
			lost = append(lost, fmt.Errorf("idle times of %q are left out: %w", app.Name, err))
			continue
		}
		out = append(out, one)
	}
	return out, lost
}

// Save stores the idle times that have changed since the last call, and removes those of closed apps. inspect calls its
// argument with the engine and the time of its clock, and returns false when the engine has ended.
func (x *IdleTimes) Save(inspect func(func(*engine.Engine, serving.Time)) bool, now time.Time) error {
	for from, more := 0, true; more; {
		changed := make(map[string][]byte)
		marks := make(map[string]idleMark)
		var failed error
		more = false
		there := inspect(func(e *engine.Engine, at serving.Time) {
			apps := e.Spec().Apps
			for name, m := range x.saved {
				if from == 0 && apps[m.app].Name != name {
					changed[name] = nil // another app has its place
				}
			}
			for ; from < len(apps); from++ {
				name, id := apps[from].Name, serving.AppID(from)
				if apps[from].Closed {
					if m, ok := x.saved[name]; ok && m.app == id {
						changed[name] = nil
					}
					continue
				}
				m := idleMark{app: id}
				m.calls, m.idle = e.Learned(id)
				if x.saved[name] == m {
					continue
				}
				if len(changed) >= idleAtOnce {
					more = true
					return
				}
				r := idleRecord{Saved: now, Memory: e.Remember(id, at)}
				if r.Memory == nil {
					continue
				}
				if m.idle != serving.Never {
					r.Idle = max(at.Sub(m.idle), 0)
				}
				b, err := json.Marshal(r)
				failed = errors.Join(failed, err)
				changed[name], marks[name] = b, m
			}
		})
		if !there || failed != nil {
			return failed
		}
		if len(changed) == 0 {
			continue
		}
		if err := x.store.Keep(store.IdleTable, changed); err != nil {
			return err
		}
		for name := range changed {
			if m, ok := marks[name]; ok {
				x.saved[name] = m
			} else {
				delete(x.saved, name)
			}
		}
	}
	return nil
}
