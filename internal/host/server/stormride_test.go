package server

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/functions"
	"github.com/sluice-serving/sluice/internal/memnet"
	"github.com/sluice-serving/sluice/serving"
)

// Times of a storm.
const (
	stormTimeout = 2 * time.Second // of a query
	// stormBound is how much later than its timeout a query may be answered: what a run that hangs is waited for, and
	// an instance that starts with the first query (cold_wait).
	stormBound = 5*time.Second + 30*time.Second
	stormWait  = time.Minute      // for a change
	stormCalm  = 15 * time.Minute // until all is well after the last fault
)

// stormCounts is what came of storms.
type stormCounts struct{ Queries, Served, Changes, Starts int }

func (c *stormCounts) add(x stormCounts) {
	c.Queries, c.Served = c.Queries+x.Queries, c.Served+x.Served
	c.Changes, c.Starts = c.Changes+x.Changes, c.Starts+x.Starts
}

// storm is a run of a script. These must hold:
//   - each query gets an answer or an error within its time and a bound, and an answer is that of a model that its name
//     had while the query ran;
//   - once faults are over, a function whose deployment was acknowledged answers, also after a restart and a kill, and
//     so does a model that was loaded since the start; what was deleted or unloaded does not;
//   - a server and a model that say that they are ready then answer a query;
//   - whatever is looked at meanwhile is shown, or refused with a reason;
//   - the engine is whole, nothing panics that was not made to, and no goroutine is left at the end;
//   - the answers to a sequence are those of a state that nothing else has changed, or none;
//   - a journal replays, up to where a kill or a full disk has cut it off.
type storm struct {
	script  *stormScript
	begun   time.Time
	net     *memnet.Network
	disk    stormDisk
	dir     string
	starts  int
	weather *stormWeather
	log     kept
	life    *stormLife
	names   map[string]*stormName
	asked   sync.WaitGroup // queries
	changes sync.WaitGroup

	mu     sync.Mutex
	counts stormCounts
	failed []string
}

// stormName is what is known of a model or function.
type stormName struct {
	turn    chan struct{} // one change at a time
	file    int           // the number of its file in the repository, or junk
	numbers []int         // that its model added, by change; gone where there was none
	sure    int           // the latest of them that was acknowledged
	deleted int           // the latest of them that was acknowledged as gone
}

// ride runs a script in a folder.
func ride(dir string, script *stormScript) *storm {
	w := &storm{script: script, dir: dir, begun: time.Now(), net: memnet.New(), names: make(map[string]*stormName),
		weather: &stormWeather{
			fault: make(map[serving.WorkerID]stormFault), until: make(map[serving.WorkerID]time.Time),
		}}
	w.addWorld()
	defer w.disk.empty()
	if !w.start() {
		return w
	}
	for _, e := range script.events {
		time.Sleep(time.Until(w.begun.Add(e.at)))
		if w.do(e); len(w.failed) > 0 {
			break
		}
	}
	w.changes.Wait()
	w.asked.Wait()
	if !w.life.isOver() { // it did not start again
		w.calm()
		w.stop()
	}
	w.check()
	return w
}

// again starts the server on what a ride has left, where the clock begins anew.
func (w *storm) again() {
	w.asked, w.changes, w.net = sync.WaitGroup{}, sync.WaitGroup{}, memnet.New()
	if w.start() {
		w.calm()
		w.stop()
	}
	w.check()
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (w *storm) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failing(format, args...)
}

// failing is fail where mu is held.
func (w *storm) failing(format string, args ...any) {
	if len(w.failed) < 5 {
		w.failed = append(w.failed, fmt.Sprintf(format, args...))
	}
}

// do has an event happen.
func (w *storm) do(e stormEvent) {
	model, function, part, times := fmt.Sprint("m", e.who), fmt.Sprint("f", e.who), fmt.Sprint("m", e.who), 1
	switch e.who {
	case ensemble:
		model, part, times = "e0", "p0", 2
	case stateful:
		model, part = "s0", "s0"
	}
	repository := "/v2/repository/models/" + model
	load := stormCall{"POST", repository + "/load", nil}
	file := filepath.Join(w.dir, "models", part, "1", "model.onnx")
	switch e.deed {
	case queriesCome:
		for k := range e.n {
			w.asked.Go(func() { w.ask(e, k) })
		}
	case modelLoads:
		w.change(model, same, nil, load)
	case modelReplaced:
		w.change(model, times*e.n, func() { must(addModel(file, float32(e.n))) }, load)
	case modelBroken:
		w.change(model, junk, func() { must(os.WriteFile(file, []byte("junk"), 0o600)) }, load)
	case modelUnloads:
		w.change(model, gone, nil, stormCall{"POST", repository + "/unload", nil})
	case functionDeployed:
		w.change(function, e.n, nil, w.deployment(function, e.n)...)
	case functionDeleted:
		w.change(function, gone, nil, stormCall{"DELETE", functions.PathFunctions + function, nil})
	case workerFails:
		w.weather.set(serving.WorkerID(e.who), stormFault(e.n), e.long)
	case serverStops:
		w.stop()
		w.restart(e)
	case serverKilled:
		w.kill()
		w.restart(e)
	case sequenceComes:
		w.asked.Go(func() { w.askSequence(e) })
	case peopleLook:
		for k := range e.n {
			w.asked.Go(func() { w.look(e, k) })
		}
	case diskFills:
		w.disk.fill(uint64(1<<(10+e.n%12)), e.long)
	case connectionsEnd:
		w.net.Drop(outside)
	}
}

// restart begins the next life, for some events a year later.
func (w *storm) restart(e stormEvent) {
	jump := [...]time.Duration{0, 0, time.Hour, 400 * 24 * time.Hour}[e.n%4]
	time.Sleep(jump)
	w.begun = w.begun.Add(jump)
	w.start()
}

// check is what must hold at the end.
func (w *storm) check() {
	w.replay()
	for line := range strings.Lines(w.log.String()) {
		if strings.Contains(line, "panic") && !strings.Contains(line, "on purpose") {
			w.fail("%.3000s", line)
		}
	}
	synctest.Wait()
	if left := stormGoroutines(); left != "" {
		w.fail("left are:\n%s", left)
	}
}

// replay looks whether what was written down of the lives gives the same decisions.
func (w *storm) replay() {
	list, err := filepath.Glob(filepath.Join(w.dir, "journal*"))
	must(err)
	for _, path := range list {
		r, err := host.Replay(path)
		switch torn := w.starts > 0 || w.disk.wasFull; {
		case err != nil && (!torn || fault.Of(err) == fault.Failed):
			w.fail("%s: %v", path, err)
		case err == nil && r.Difference != nil:
			w.fail("%s: %v", path, r.Difference)
		case err == nil && r.Cut != nil && !torn:
			w.fail("%s is cut off: %v", path, r.Cut)
		}
	}
	if w.script.journal != (len(list) > 0) && !w.disk.wasFull {
		w.fail("journals: %v", list)
	}
}

// stormGoroutines are the stacks of the goroutines of this bubble but the caller's.
func stormGoroutines() string {
	b := make([]byte, 1<<20)
	all := strings.Split(string(b[:runtime.Stack(b, true)]), "\n\n")
	_, bubble, found := strings.Cut(strings.SplitN(all[0], "\n", 2)[0], "synctest bubble ")
	if !found {
		return ""
	}
	var left []string
	for _, x := range all[1:] {
		head := strings.SplitN(x, "\n", 2)[0]
		if strings.Contains(head, "synctest bubble "+bubble) && !strings.Contains(x, "testing/synctest.Test") {
			left = append(left, x)
		}
	}
	return strings.Join(left, "\n\n")
}
