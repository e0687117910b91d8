package dashboard

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/sluice-serving/sluice/internal/api/routes"
	"github.com/sluice-serving/sluice/internal/measure/board"
	"github.com/sluice-serving/sluice/internal/measure/steps"
	"github.com/sluice-serving/sluice/serving"
)

// Info says what is shown.
type Info struct {
	Schema  int    `json:"schema"`
	Name    string `json:"name"`
	Version string `json:"version"`
	System  string `json:"system"`
	// Source is "live", or "saved" for a run that is over.
	Source string `json:"source"`
	// Run says that a run is shown; without one there are figures and reports only.
	Run bool `json:"run"`
	// StartedMS is the start of the run in ms since 1970; 0 where it is not known.
	StartedMS int64 `json:"started_ms"`
	// Token says that questions which cost time, as what-if, need the token.
	Token bool `json:"token"`
	// WhatIf and Figures say whether the server answers these questions.
	WhatIf  bool `json:"what_if"`
	Figures bool `json:"figures"`
	// History says since when, in ms since 1970, the server remembers an earlier time; 0 for not at all.
	HistoryMS int64 `json:"history_ms"`
}

// Config is what a dashboard reads.
type Config struct {
	Info Info
	// Board is what is shown.
	Board *board.Board
	// Clock returns the present time of the run; nil for a run that is over.
	Clock func() serving.Time
	// Log knows the ways of queries; nil if nobody does.
	Log *steps.Log
	// WhatIf answers such questions; nil for nobody. It is guarded by the caller. Setting returns what they can change.
	WhatIf  http.Handler
	Setting func() Setting
	// Figures and History answer questions about saved figures and about earlier days; nil for nobody.
	Figures http.Handler
	History http.Handler
}

// Dashboard answers questions. Run has to run for its stream.
type Dashboard struct {
	c   Config
	hub hub
	// turn is held while an answer is made.
	turn sync.Mutex
}

// New returns a dashboard of what c names.
func New(c Config) *Dashboard {
	c.Info.Schema, c.Info.WhatIf, c.Info.Figures = board.Schema, c.WhatIf != nil, c.Figures != nil
	return &Dashboard{c: c, hub: hub{readers: make(map[*reader]bool)}}
}

// Prefix is the path of everything that a Dashboard answers.
const Prefix = "/api/v1/"

// Handler answers the paths below Prefix.
func (d *Dashboard) Handler() http.Handler {
	mux := new(routes.Mux)
	b := d.c.Board
	get := func(path string, f func(*http.Request) (any, string)) {
		mux.HandleFunc("GET "+Prefix+path, func(w http.ResponseWriter, r *http.Request) {
			body, status, problem := d.made(w.Header(), r, f)
			if problem != "" {
				refuse(w, status, problem)
				return
			}
			_, _ = w.Write(body)
		})
	}
	get("info", func(*http.Request) (any, string) { return d.c.Info, "" })
	get("overview", func(*http.Request) (any, string) { return b.Overview(), "" })
	get("machines", func(*http.Request) (any, string) { return b.Machines(&board.Look{}), "" })
	get("plans", func(*http.Request) (any, string) { return list("plans", b.Plans()), "" })
	get("plans/{number}", d.plan)
	get("apps/{app}", d.app)
	get("series", d.series)
	get("batches", d.batches)
	get("queries", d.queries)
	get("queries/{query}", d.query)
	get("seconds", func(*http.Request) (any, string) {
		return b.Seconds(int64(d.now().Seconds())-firstSeconds, firstSeconds), ""
	})
	if d.c.Setting != nil {
		get("setting", func(*http.Request) (any, string) { return d.c.Setting(), "" })
	}
	mux.HandleFunc("GET "+Prefix+"stream", d.stream)
	for path, h := range map[string]http.Handler{
		Prefix + "what-if": d.c.WhatIf, "GET " + Prefix + "figures": d.c.Figures,
		"GET " + Prefix + "figures/": d.c.Figures, "GET " + Prefix + "history": d.c.History,
	} {
		if h != nil {
			mux.Handle(path, h)
		}
	}
	mux.HandleFunc(Prefix, func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, "there is nothing at "+strconv.Quote(r.URL.Path)+
			": docs/dashboard.md lists the paths")
	})
	return mux
}

// made makes an answer. One is made at a time, so that many pages that ask at once do not keep the processors from
// those who are served; nobody waits for a client here.
func (d *Dashboard) made(h http.Header, r *http.Request, f func(*http.Request) (any, string)) (body []byte, status int,
	problem string) {
	d.turn.Lock()
	defer d.turn.Unlock()
	d.advance()
	v, problem := f(r)
	switch {
	case problem == "":
	case v != nil:
		return nil, http.StatusBadRequest, problem
	default:
		return nil, http.StatusNotFound, problem
	}
	body, err := encode(h, r, v)
	if err != nil {
		return nil, http.StatusInternalServerError, err.Error()
	}
	return body, http.StatusOK, ""
}

// firstSeconds is how many of the latest seconds a page begins with.
const firstSeconds = 90

// Setting is what questions "what if" can change, as it is.
type Setting struct {
	System   string       `json:"system"`
	Systems  []string     `json:"systems"`
	Budget   float64      `json:"budget,omitempty"` // $/h
	Apps     []AppSetting `json:"apps"`
	Machines []Machines   `json:"machines"`
}

// AppSetting is what of an app can be changed.
type AppSetting struct {
	Name   string  `json:"name"`
	SLOMS  float64 `json:"slo_ms"`
	Floor  float64 `json:"accuracy_floor"`
	Target float64 `json:"accuracy_target"`
	Best   float64 `json:"best_accuracy"`
}

// Machines are a worker or a group of workers.
type Machines struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Count int    `json:"count"`
}

func (d *Dashboard) advance() {
	if d.c.Clock != nil {
		d.c.Board.Advance(d.c.Clock())
	}
}

func list(name string, v any) map[string]any { return map[string]any{"schema": board.Schema, name: v} }

// wrong marks a question that cannot be understood, beside one about something that is not there.
var wrong any = struct{}{}

func (d *Dashboard) plan(r *http.Request) (any, string) {
	n, err := strconv.Atoi(r.PathValue("number"))
	if err != nil {
		return wrong, "the number of a plan is a whole number"
	}
	p, ok := d.c.Board.Plan(n)
	if !ok {
		return nil, "plan " + strconv.Itoa(n) + " is not among the latest ones: /api/v1/plans lists them"
	}
	return p, ""
}

func (d *Dashboard) app(r *http.Request) (any, string) {
	v, ok := d.c.Board.AppView(r.PathValue("app"))
	if !ok {
		return nil, unknownApp(r.PathValue("app"))
	}
	return v, ""
}

func unknownApp(name string) string {
	return "there is no app " + strconv.Quote(name) + ": /api/v1/overview lists them"
}

// series answers ?app=NAME&from=S&to=S&step=1|60; without an app those of all together.
func (d *Dashboard) series(r *http.Request) (any, string) {
	q := r.URL.Query()
	app := serving.AppID(serving.None)
	if name := q.Get("app"); name != "" {
		var ok bool
		if app, ok = d.c.Board.App(name); !ok {
			return nil, unknownApp(name)
		}
	}
	whole := func(key string, or int64) (int64, string) {
		if q.Get(key) == "" {
			return or, ""
		}
		n, err := strconv.ParseInt(q.Get(key), 10, 64)
		if err != nil {
			return 0, key + " must be a whole number of seconds"
		}
		return n, ""
	}
	from, problem := whole("from", 0)
	to, second := whole("to", 1<<40)
	step, third := whole("step", 1)
	if problem += second + third; problem != "" {
		return wrong, problem
	}
	return map[string]any{
		"schema": board.Schema, "app": q.Get("app"), "buckets": board.BucketStarts(),
		"series": d.c.Board.Series(app, from, to, int(step)),
	}, ""
}

// mostWatched bounds the workers of one question for batches.
const mostWatched = 64

// batches answers ?workers=W,W&since=S: what runs on these workers, and what has ended there since.
func (d *Dashboard) batches(r *http.Request) (any, string) {
	var workers []int
	for w := range strings.SplitSeq(r.URL.Query().Get("workers"), ",") {
		n, err := strconv.Atoi(w)
		if err != nil || n < 0 || len(workers) >= mostWatched {
			return wrong, "workers must be at most " + strconv.Itoa(mostWatched) +
				" positions in the list of /api/v1/machines, separated by commas"
		}
		workers = append(workers, n)
	}
	since := 0.0
	if s := r.URL.Query().Get("since"); s != "" {
		var err error
		if since, err = strconv.ParseFloat(s, 64); err != nil || !(since >= 0 && since < 1e9) {
			return wrong, "since must be a number of seconds since the start"
		}
	}
	return d.c.Board.Recent(workers, serving.Time(since*1e9)), ""
}

// mostListed bounds ?limit of queries.
const mostListed = 400

func (d *Dashboard) queries(r *http.Request) (any, string) {
	limit := 100
	if s := r.URL.Query().Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > mostListed {
			return wrong, "limit must be a whole number from 1 to " + strconv.Itoa(mostListed)
		}
		limit = n
	}
	out := list("missed", d.c.Board.Missed(r.URL.Query().Get("app"), limit))
	if d.c.Log != nil {
		out["answered"] = d.c.Log.Answered()
	}
	return out, ""
}

// QueryRun is a batch that a query was in, with where it ran and what could have begun instead.
type QueryRun struct {
	steps.Run
	Worker   string            `json:"worker,omitempty"` // where the instance is, while it lives
	Compared *board.Comparison `json:"compared,omitempty"`
}

// QueryView is the way of a query. Its fields are those of 'sluice explain --json'; Text is its text.
type QueryView struct {
	Schema int `json:"schema"`
	steps.Explanation
	Runs []QueryRun `json:"runs"`
	Text string     `json:"text"`
}

func (d *Dashboard) query(r *http.Request) (any, string) {
	id, err := strconv.ParseUint(r.PathValue("query"), 10, 64)
	if err != nil || id == 0 {
		return wrong, "the number of a query is a whole number above 0: answers carry it as parameter query_id"
	}
	if d.c.Log == nil {
		return nil, "this run has no record of single queries"
	}
	x, ok := d.c.Log.Explain(serving.QueryID(id))
	if !ok {
		return nil, "query " + strconv.FormatUint(id, 10) +
			" is unknown, or longer ago than the latest ones that are remembered"
	}
	out := QueryView{Schema: board.Schema, Explanation: *x, Runs: []QueryRun{}}
	for k := range x.Runs {
		y := QueryRun{Run: x.Runs[k]}
		y.Worker, _, _ = d.c.Board.Where(serving.InstanceID(y.Instance))
		y.Compared, _ = d.c.Board.Compare(y.Batch, d.c.Log.WaitingAt(y.Batch))
		out.Runs = append(out.Runs, y)
	}
	var text strings.Builder
	_ = x.Text(&text)
	out.Text = text.String()
	return out, ""
}

// worthPacking is the size in bytes from which an answer is compressed: a smaller one is a few packets anyhow.
const worthPacking = 4 << 10

// packers keeps compressors, since each new one allocates more than a megabyte.
var packers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // a known level
	return z
}}

// encode returns an answer in JSON, compressed where the client takes it, and sets its headers.
func encode(h http.Header, r *http.Request, v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Add("Vary", "Accept-Encoding")
	if len(b) < worthPacking || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		return b, nil
	}
	h.Set("Content-Encoding", "gzip")
	var packed bytes.Buffer
	z := packers.Get().(*gzip.Writer)
	z.Reset(&packed)
	_, _ = z.Write(b) // into memory
	_ = z.Close()
	packers.Put(z)
	return packed.Bytes(), nil
}

func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	b, _ := json.Marshal(map[string]string{"error": text}) // a map of texts
	_, _ = w.Write(b)
}
