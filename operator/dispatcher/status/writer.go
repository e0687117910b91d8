package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/internal/measure/board"
	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/cell"
)

// Plan is a plan in full.
type Plan = board.PlanView

// Source is a cell that this replica serves.
type Source struct {
	// Run names the run: plans are counted anew in each.
	Run     string
	Figures func() Cell
	// Plan returns a plan by its number; false when it is not kept.
	Plan func(number int) (*Plan, bool)
	// Advise diagnoses the plan for the demand that is seen; it takes seconds. Nil never does.
	Advise func(ctx context.Context) (Said, error)
	// Failure is why the cell's latest configuration is not served; nil where it is.
	Failure error
	// Writes are the apps whose status this cell writes: those that no cell with a lower number has.
	Writes func(app string) bool
	// Share is the cell's part of an app, above 0 and at most 1; nil for all of each.
	Share func(app string) float64
}

// Config says what is written where.
type Config struct {
	Client           client.Client
	Events           record.EventRecorder
	Namespace, Fleet string
	Holder           string // the name of this pod
	// Every is the least time between two writes of one status.
	Every time.Duration
	Log   *slog.Logger
}

// Writer writes statuses. It is not safe for concurrent use.
type Writer struct {
	c     Config
	cells map[int]*written
}

// written is what was last written of a cell.
type written struct {
	apps   map[string]*entry
	fleet  entry
	run    string // the latest run's configuration
	plan   int    // its last plan that events told of
	failed string // the last failure that events told of
	asked  time.Time
	advice chan Said
	said   Said
}

// entry is a status as it was last written.
type entry struct {
	text   string
	judged string        // its conditions, without their messages
	at     time.Time     // of the last try to write
	wait   time.Duration // from then, until figures are written again
	after  time.Time     // not before
	told   time.Time     // when an event was made last
	news   string        // what an event is to say next; "" for nothing
	object *unstructured.Unstructured
	status appStatus
}

// NewWriter returns a writer.
func NewWriter(c Config) *Writer { return &Writer{c: c, cells: make(map[int]*written)} }

// Write writes what has changed of these cells. Cells that are not among them are not this replica's any more.
func (w *Writer) Write(ctx context.Context, sources map[int]Source) {
	for n := range w.cells {
		if _, ok := sources[n]; !ok {
			delete(w.cells, n)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(sources)) {
		if w.cells[n] == nil {
			w.cells[n] = &written{apps: make(map[string]*entry), advice: make(chan Said, 1)}
		}
		w.cell(ctx, n, w.cells[n], sources[n])
	}
}

// cell writes what has changed of one cell.
func (w *Writer) cell(ctx context.Context, n int, c *written, s Source) {
	now := time.Now()
	f := s.Figures()
	w.diagnose(ctx, c, s, f, now)
	for _, name := range slices.Sorted(maps.Keys(f.Apps)) {
		if s.Writes != nil && !s.Writes(name) {
			continue
		}
		e := c.apps[name]
		if e == nil {
			e = &entry{}
			c.apps[name] = e
		}
		a, said := f.Apps[name], Said{}
		if s.Share != nil {
			a = a.whole(s.Share(name))
		}
		if a.Shed > 0.01*a.Demand {
			said = c.said
		}
		w.write(ctx, n, "InferenceApp", name, e, e.status.fields(a, said, now), now)
	}
	for name := range c.apps {
		if _, ok := f.Apps[name]; !ok {
			delete(c.apps, name)
		}
	}
	w.write(ctx, n, "Fleet", w.c.Fleet, &c.fleet, map[string]any{"cells": []any{w.cellStatus(n, f, s.Failure)}}, now)
	w.tell(n, c, s, f)
	w.announce(c, now)
}

// cellStatus is a cell's part of the status of its fleet.
func (w *Writer) cellStatus(n int, f Cell, failure error) map[string]any {
	apps, machines := []any{}, map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(f.Apps)) {
		apps = append(apps, name)
	}
	for kind, count := range f.Machines {
		machines[kind] = int64(count)
	}
	out := map[string]any{"cell": int64(n), "holder": w.c.Holder, "apps": apps}
	if len(machines) > 0 { // applied over some, none would become null, which the definition refuses
		out["machines"] = machines
	}
	if f.Plan > 0 {
		out["plan"] = fmt.Sprintf("plan %d: %s", f.Plan, f.Why)
		out["planned"] = f.Planned.UTC().Truncate(10 * time.Second).Format(time.RFC3339)
	}
	if failure != nil {
		out["plan"] = "the latest configuration cannot be served, the one before is: " + failure.Error()
	}
	return out
}

// write writes a status if it differs from what was written and enough time has gone by.
func (w *Writer) write(ctx context.Context, n int, kind, name string, e *entry, status map[string]any,
	now time.Time) {
	b, err := json.Marshal(status)
	if err != nil || string(b) == e.text {
		return
	}
	judged := conditionsOf(status)
	if !e.due(judged, now, w.c.Every) {
		return
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	u.SetNamespace(w.c.Namespace)
	u.SetName(name)
	limit, done := context.WithTimeout(ctx, 5*time.Second)
	defer done()
	err = w.c.Client.Status().Apply(limit, client.ApplyConfigurationFromUnstructured(u),
		client.FieldOwner(cell.Manager(n)), client.ForceOwnership)
	switch {
	case err == nil:
		e.text, e.judged, e.object = string(b), judged, u
	case apierrors.IsNotFound(err): // it is being deleted, or the configuration was not made of resources
		e.after = now.Add(time.Minute)
	case ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded):
		w.c.Log.Warn("a status was not written", "kind", kind, "name", name, "error", err)
	}
}

// conditionsOf lists the conditions of a status with their reasons.
func conditionsOf(status map[string]any) (text string) {
	list, _ := status["conditions"].([]any)
	for _, c := range list {
		if x, ok := c.(map[string]any); ok {
			text += fmt.Sprint(x["type"], "=", x["status"], " ", x["reason"], ";")
		}
	}
	return text
}

// tellEvery is the least time between two events about the plan of one app.
const tellEvery = time.Minute

// adviseEvery is the least time between two diagnoses of a cell's plan, which take seconds of a processor.
const adviseEvery = time.Minute

// diagnose asks what the plan lacks while it leaves demand out, beside other work.
func (w *Writer) diagnose(ctx context.Context, c *written, s Source, f Cell, now time.Time) {
	select {
	case c.said = <-c.advice:
	default:
	}
	short := false
	for _, a := range f.Apps {
		short = short || a.Shed > 0.01*a.Demand
	}
	if !short {
		c.said = Said{}
		return
	}
	if s.Advise == nil || now.Sub(c.asked) < adviseEvery {
		return
	}
	c.asked = now
	advice := c.advice
	go func() {
		said, err := s.Advise(ctx)
		if err != nil {
			w.c.Log.Info("the plan was not diagnosed", "error", err)
			return
		}
		select {
		case advice <- said:
		default: // the one before has not been read
		}
	}()
}

// tell makes events of what a new plan has changed.
func (w *Writer) tell(n int, c *written, s Source, f Cell) {
	failure := ""
	if s.Failure != nil {
		failure = s.Failure.Error()
	}
	if failure != c.failed && c.fleet.object != nil {
		c.failed = failure
		if failure != "" {
			w.c.Events.Event(c.fleet.object, corev1.EventTypeWarning, "ConfigurationRefused",
				fmt.Sprintf("Cell %d: %s", n, failure))
		}
	}
	if s.Run != c.run {
		c.run, c.plan = s.Run, 0
	}
	if f.Plan == 0 || f.Plan == c.plan || s.Plan == nil {
		return
	}
	p, ok := s.Plan(f.Plan)
	c.plan = f.Plan
	if !ok {
		return
	}
	for app, text := range changesOf(p) {
		if e := c.apps[app]; e != nil {
			e.news = text
		}
	}
}

// announce makes the events of apps whose plan has changed, of each the last change.
func (w *Writer) announce(c *written, now time.Time) {
	for _, name := range slices.Sorted(maps.Keys(c.apps)) {
		if e := c.apps[name]; e.news != "" && e.object != nil && now.Sub(e.told) >= tellEvery {
			w.c.Events.Event(e.object, corev1.EventTypeNormal, "PlanChanged", e.news)
			e.told, e.news = now, ""
		}
	}
}
