package server

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strconv"

	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/functions"
	"github.com/sluice-serving/sluice/internal/host/machines"
	"github.com/sluice-serving/sluice/internal/models/repository/pb"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/pipeline"
	"github.com/sluice-serving/sluice/tensor"
)

// models describes the apps of the configuration for clients. The inputs and outputs of a graph follow from its stages,
// unless the file has them.
func models(o *host.Opened, b *machines.Backends, wiring []pipeline.Wiring, log *slog.Logger) (out []*server.Model,
	err error) {
	ctx, done := context.WithTimeout(context.Background(), b.Timeout()) // one timeout for all apps
	defer done()
	for a := range o.Tables().Apps {
		id, info := serving.AppID(a), &o.Tables().Apps[a]
		m := model(ctx, o, id, b, log)
		if len(o.Spec().Apps[a].Stages) > 1 {
			inputs, outputs, err := pipeline.Interface(o.Spec(), wiring, id)
			if err != nil {
				return nil, fault.Wrap(fault.Config, err)
			}
			if info.Inputs == nil {
				m.Inputs = inputs
			}
			if info.Outputs == nil {
				m.Outputs = outputs
			}
		}
		if n, most := m.LeastOutput(nil, 1), int64(o.File().Server.Limits.Output); n > most {
			log.Warn("the outputs of one item are more than an answer takes (server.limits.output, --output-limit): "+
				"requests must name those that they want, or are refused", "model", m.Name, "bytes", n, "limit", most)
		}
		out = append(out, m)
	}
	return brokenModels(o, families(o, out)), nil
}

// families joins the apps that are versions of one model. It returns the models that clients see.
func families(o *host.Opened, all []*server.Model) []*server.Model {
	var out []*server.Model
	first := make(map[string]*server.Model)
	for _, m := range all {
		if o.Spec().Apps[m.App].VersionOf == "" {
			out = append(out, m)
			first[m.Name] = m
		}
	}
	for _, m := range all {
		if app := &o.Spec().Apps[m.App]; app.VersionOf != "" {
			main := first[app.VersionOf]
			m.Name, main.Family = main.Name, append(main.All(), m)
		}
	}
	for _, m := range all {
		m.Family = first[m.Name].Family
	}
	return out
}

// model describes an app for clients. Its versions are the variants of the app's last stage, which answers.
func model(ctx context.Context, o *host.Opened, a serving.AppID, b *machines.Backends, log *slog.Logger) *server.Model {
	spec, info := o.Spec(), &o.Tables().Apps[a]
	app := &spec.Apps[a]
	m := &server.Model{
		Name: app.Name, App: a, Platform: server.OfONNX, Inputs: info.Inputs, Outputs: info.Outputs,
		Batched: info.Batched, MaxBatch: 1,
	}
	if info.Triton != nil {
		m.Config = info.Triton.Config
	}
	bound := int(m.Config.GetMaxBatchSize())
	if app.Ensemble && len(info.Inputs) > 0 { // its own configuration says what clients see
		m.Batched, m.Whole, m.Plain = info.Batched || info.Whole && bound > 0, info.Whole, bound == 0
	}
	m.Labels = labels(o, a)
	first, last := app.Stages[0], app.Stages[len(app.Stages)-1]
	if o.Tables().Variants[spec.Stages[last].Variants[0]].Python != nil {
		m.Platform = machines.PythonPlatform
	}
	if app.Composed() {
		m.Platform = server.Ensemble
	}
	m.Length = o.Fleet().LengthAt(first)
	for _, v := range spec.Stages[first].Variants {
		m.MaxBatch = max(m.MaxBatch, spec.Variants[v].MaxBatch)
		if m.Inputs == nil {
			if t, err := b.Describe(ctx, v); err != nil {
				log.Warn("requests are not checked, since nothing describes them", "app", app.Name, "error", err)
			} else {
				m.Inputs, m.Batched = t.Inputs, t.Batched
				if first == last {
					m.Outputs = t.Outputs
				}
			}
		}
	}
	switch {
	case m.Whole:
		m.MaxBatch = bound
	case app.Ensemble && bound > 0:
		m.MaxBatch = min(m.MaxBatch, bound)
	}
	m.Optional = optional(o, a)
	if v := spec.Stages[first].Variants[0]; m.Config == nil && first == last && b.Decoupled(ctx, v) {
		m.Config = &pb.ModelConfig{ModelTransactionPolicy: &pb.ModelTransactionPolicy{Decoupled: true}}
	}
	for _, s := range app.Stages[:len(app.Stages)-1] {
		for _, v := range spec.Stages[s].Variants {
			m.Earlier = append(m.Earlier, server.Version{
				Variant: v, Name: spec.Variants[v].Name, Accuracy: spec.Variants[v].Accuracy,
			})
		}
	}
	for _, v := range spec.Stages[last].Variants {
		m.Versions = append(m.Versions, server.Version{
			Variant: v, Name: spec.Variants[v].Name, Version: spec.ClientVersion(v),
			Accuracy: spec.Variants[v].Accuracy,
		})
	}
	return m
}

// optional are the optional inputs of an app: those of its only model, if that runs in this process.
func optional(o *host.Opened, a serving.AppID) []tensor.Spec {
	stages := o.Spec().Apps[a].Stages
	if len(stages) > 1 || len(o.Spec().Stages[stages[0]].Variants) > 1 {
		return nil
	}
	b := &o.Tables().Variants[o.Spec().Stages[stages[0]].Variants[0]]
	if b.Described == nil || b.Path == "" {
		return nil
	}
	return b.Described.Optional
}

// labels are the names of the classes of an app's outputs: those of its ensemble's configuration, else those of the
// models that give them.
func labels(o *host.Opened, a serving.AppID) map[string][]string {
	out := make(map[string][]string)
	for _, st := range o.Spec().Apps[a].Stages {
		d := o.Tables().Variants[o.Spec().Stages[st].Variants[0]].Described
		if d == nil {
			continue
		}
		for name, labels := range d.Labels {
			if other, ok := o.Tables().Stages[st].Gives[name]; ok {
				name = other
			}
			out[name] = labels
		}
	}
	if t := o.Tables().Apps[a].Triton; t != nil {
		maps.Copy(out, t.Labels)
	}
	return out
}

// functionModel describes a function for clients. was is the version that it replaces, or nil. Former versions are
// listed until others have their places.
func functionModel(spec *serving.Spec, l *functions.Live, m *functions.Manager, was *server.Model) *server.Model {
	out := &server.Model{Name: l.Name, App: l.App, Generation: spec.Apps[l.App].Generation,
		Platform: server.OfONNX, Inputs: l.Inputs, Outputs: l.Outputs,
		Batched: l.Batched, MaxBatch: m.MaxBatch(l),
		Versions: []server.Version{
			{
				Variant: l.Variant, Name: functions.VariantName(l.Name, l.Version), Version: strconv.Itoa(l.Version),
				Accuracy: 1, Generation: spec.Variants[l.Variant].Generation,
			},
		}}
	if l.Python {
		out.Platform = machines.PythonPlatform
	}
	if was != nil && was.App == l.App && was.Generation == out.Generation {
		out.Former = slices.DeleteFunc(slices.Concat(was.Former, was.Versions), func(v server.Version) bool {
			return spec.Variants[v.Variant].Generation != v.Generation
		})
	}
	return out
}

// brokenModels are the apps that are not served, as clients see them: as a version of a model that is served, or as a
// model of its own.
func brokenModels(o *host.Opened, served []*server.Model) []*server.Model {
	for _, x := range o.Broken() {
		m := &server.Model{
			Name: x.App.ClientName(), App: serving.None, Platform: server.OfONNX, Failed: x.Reason.Error(),
			FailedKind: failedRuntime,
			Versions:   []server.Version{{Variant: serving.None, Name: x.App.Name, Version: x.Version}},
		}
		if len(x.App.Stages) > 1 {
			m.Platform, m.Versions[0].Version = server.Ensemble, strconv.Itoa(1)
		}
		joined := false
		for _, main := range served {
			if main.Name == m.Name {
				all := slices.Concat(main.All(), []*server.Model{m})
				for _, y := range all {
					y.Family = all
				}
				joined = true
			}
		}
		if !joined {
			served = append(served, m)
		}
	}
	return served
}

// OneOutput is an output that a call of a model may ask for where an answer does not take all of them; empty where it
// does, and for models that are not known.
func (s *Server) OneOutput(name string) string {
	m, ok := s.service.Lookup(name)
	most := int64(s.planned.File().Server.Limits.Output)
	if !ok || m.LeastOutput(nil, 1) <= most {
		return ""
	}
	for k := range m.Outputs {
		if m.LeastOutput([]string{m.Outputs[k].Name}, 1) <= most {
			return m.Outputs[k].Name
		}
	}
	return ""
}
