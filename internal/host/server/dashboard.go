package server

import (
	"net/http"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/docs"
	"github.com/sluice-serving/sluice/internal/api/dashboard"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/measure/board"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/web"
)

// keptArrivals is how many of the latest arrivals a server keeps for questions of the kind "what if": 9 MB.
const keptArrivals = 1 << 16

// startBoard starts to watch the engine for the dashboard and for objectives.
func (s *Server) startBoard() {
	p := s.planned
	known := p.Tables().Variants
	s.objectives = newObjectives(s.log, func(v serving.VariantID) bool {
		return int(v) < len(known) && known[v].Function != nil
	})
	s.refiner = newRefiner(p.Profiled, s.log)
	o := board.Options{Arrivals: keptArrivals, Learns: p.System().Options.Learn, Ran: s.ran}
	if p.Latencies() != nil && p.Latencies().Learner() == nil {
		o.Measured = p.Latencies()
	}
	s.board = board.New(p.Spec(), s.steps, o)
}

// ran takes a batch that has ended well.
func (s *Server) ran(measured profile.Profile, v serving.VariantID, d serving.DeviceTypeID, items, concurrency int,
	took, expected time.Duration) {
	s.objectives.ran(measured, v, d, items, concurrency, took, expected)
	s.refiner.ran(v, d, items, concurrency, took)
}

// newDashboard returns what answers the page's questions.
func (s *Server) newDashboard(token string, o Options) *dashboard.Dashboard {
	p := s.planned
	c := dashboard.Config{
		Info: dashboard.Info{
			Name: p.File().Server.Name, Version: host.Version(), System: p.System().Name, Source: "live", Run: true,
			StartedMS: time.Now().Add(-time.Duration(s.plane.Now())).UnixMilli(),
			Token:     token != "" || p.File().Access.Identifies(),
		},
		Board: s.board, Clock: s.plane.Now, Log: s.steps,
	}
	if s.history != nil {
		c.History, c.Info.HistoryMS = s.history, s.history.since()
	}
	if len(p.Spec().Apps) > 0 && !p.StartsUnprofiled() {
		c.WhatIf = s.whatIf(o.WhatIf)
		c.Setting = func() dashboard.Setting { return setting(p) }
	}
	return dashboard.New(c)
}

// publicPage reports whether a path is a part of the page or a document: a browser that opens it cannot say who asks.
// What the page shows it asks below dashboard.Prefix, with the key that it was given.
func publicPage(path string) bool {
	return path == "/" || path == "/icon.svg" || path == "/favicon.ico" || strings.HasPrefix(path, "/assets/") ||
		strings.HasPrefix(path, docs.Prefix)
}

// dashboardHandlers adds the page and what it asks to those of the admin address.
func (s *Server) dashboardHandlers(out map[string]http.Handler, token string, o Options) {
	s.dashboard = s.newDashboard(token, o)
	s.telemetry.CountPages(s.dashboard.Lost)
	out[dashboard.Prefix] = s.dashboard.Handler()
	out["/"] = web.Handler()
	out[docs.Prefix] = docs.Handler()
}

// setting returns what questions "what if" can change, as it is.
func setting(p *host.Planned) dashboard.Setting {
	out := dashboard.Setting{Systems: systems.Names(), System: p.System().Name, Budget: p.File().System.Budget}
	for i := range p.File().Workers {
		w := &p.File().Workers[i]
		out.Machines = append(out.Machines, dashboard.Machines{Name: w.Name, Kind: w.DeviceType, Count: w.Count})
	}
	for a := range p.File().Apps {
		x := &p.File().Apps[a]
		out.Apps = append(out.Apps, dashboard.AppSetting{
			Name: x.Name, SLOMS: time.Duration(x.SLO.Latency).Seconds() * 1e3, Floor: x.AccuracyFloor,
			Target: x.AccuracyTarget, Best: p.Spec().BestAccuracy(serving.AppID(a)),
		})
	}
	return out
}
