package loadgen

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
)

// StageTime is what a server reports of a query at one stage of its app.
type StageTime struct {
	Stage        string
	Items, Batch int32 // of the query, and of its last batch
	Length       int32 // of the query's longest item there; 0 where the server does not say
	// Ready is from the query's arrival until it could begin there, Queue from then to its last batch.
	Ready, Queue, Run time.Duration
}

// maxStages bounds the stages of one answer, because a server may send anything.
const maxStages = 256

// stage reads the response parameter stage.NAME.FIELD. NAME may contain dots.
func (a *Answer) stage(key string, whole int64) {
	name, ok := strings.CutPrefix(key, "stage.")
	dot := strings.LastIndexByte(name, '.')
	if !ok || dot < 1 {
		return
	}
	name, field := name[:dot], name[dot+1:]
	at := slices.IndexFunc(a.Stages, func(s StageTime) bool { return s.Stage == name })
	if at < 0 {
		if len(a.Stages) >= maxStages {
			return
		}
		at = len(a.Stages)
		a.Stages = append(a.Stages, StageTime{Stage: name})
	}
	s := &a.Stages[at]
	switch field {
	case "ready_us":
		s.Ready = micros(whole)
	case "queue_us":
		s.Queue = micros(whole)
	case "run_us":
		s.Run = micros(whole)
	case "items":
		s.Items = count(whole)
	case "batch":
		s.Batch = count(whole)
	case "length":
		s.Length = count(whole)
	}
}

// inside is how long a query was with the server, by its stages; 0 when the server does not report them.
func inside(stages []StageTime) (out time.Duration) {
	for _, s := range stages {
		out = max(out, s.Ready+s.Queue+s.Run)
	}
	return out
}

// micros and count convert numbers from a server, which may be out of range.
func micros(us int64) time.Duration {
	return time.Duration(min(max(us, 0), int64(24*time.Hour/time.Microsecond))) * time.Microsecond
}

func count(n int64) int32 { return int32(min(max(n, 0), math.MaxInt32)) }

// StageUse sums up an app's served queries at one stage.
type StageUse struct {
	App    string             `json:"app"`
	Stage  string             `json:"stage"`
	Served int64              `json:"served"` // queries that ran there; others passed the stage over
	Items  float64            `json:"items"`  // mean over queries
	Batch  float64            `json:"batch"`  // items of a query's batch, mean over queries
	Queue  report.Percentiles `json:"queue"`  // wait for the start of the batch
	Run    report.Percentiles `json:"run"`
}

// stageUses collects stage times as queries end. It is safe for concurrent use.
type stageUses struct {
	mu sync.Mutex
	by map[stageName]*stageTimes
}

type stageName struct {
	app   serving.AppID
	stage string
}

type stageTimes struct {
	items, batch int64
	queue, run   []time.Duration
}

func (u *stageUses) add(app serving.AppID, stages []StageTime) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.by == nil {
		u.by = make(map[stageName]*stageTimes)
	}
	for _, s := range stages {
		t := u.by[stageName{app, s.Stage}]
		if t == nil {
			if len(u.by) >= maxNames {
				continue
			}
			t = &stageTimes{}
			u.by[stageName{app, s.Stage}] = t
		}
		t.items += int64(s.Items)
		t.batch += int64(s.Batch)
		t.queue, t.run = append(t.queue, s.Queue), append(t.run, s.Run)
	}
}

// list returns the sums, by app and then by name of stage.
func (u *stageUses) list(apps []App) []StageUse {
	u.mu.Lock()
	defer u.mu.Unlock()
	var out []StageUse
	for n, t := range u.by {
		served := float64(len(t.run))
		out = append(out, StageUse{App: apps[n.app].Name, Stage: n.stage, Served: int64(len(t.run)),
			Items: float64(t.items) / served, Batch: float64(t.batch) / served,
			Queue: report.PercentilesOf(t.queue), Run: report.PercentilesOf(t.run)})
	}
	slices.SortFunc(out, func(a, b StageUse) int {
		return cmp.Or(cmp.Compare(a.App, b.App), cmp.Compare(a.Stage, b.Stage))
	})
	return out
}

// byStage returns what is to be recorded of each stage: the items that reached it, and their length where the server
// says it. Each is nil when it reports none.
func byStage(stages []StageTime) (items, lengths map[string]int32) {
	if len(stages) == 0 {
		return nil, nil
	}
	items = make(map[string]int32, len(stages))
	for _, s := range stages {
		items[s.Stage] = s.Items
		if s.Length > 0 {
			if lengths == nil {
				lengths = make(map[string]int32)
			}
			lengths[s.Stage] = s.Length
		}
	}
	return items, lengths
}
