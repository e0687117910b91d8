package config

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-serving/sluice/internal/limits"
	"github.com/sluice-serving/sluice/internal/models/repository"
	"github.com/sluice-serving/sluice/serving/pipeline"
	"github.com/sluice-serving/sluice/tensor"
)

// Bounds on what a file may describe.
const (
	maxWorkers = 10_000 // groups expanded
	maxStages  = 256    // of one app
	maxSlots   = 1024   // of one instance
	maxHints   = 500    // names that are compared for a similar one
)

// file checks everything that needs no other file.
func (c *checker) file() {
	f := c.f
	if f.Version != 1 {
		if f.has("version") {
			c.addf("version", "is %d, this program reads version 1", f.Version)
		} else {
			c.addf("version", "is missing: write `version: 1` at the top")
		}
	}
	c.settings(f)
	c.deviceTypes()
	c.workers()
	c.system(&f.System, "system")
	c.apps()
	c.placement()
	c.server()
	c.tenants()
	c.access()
	c.telemetry()
	for i, p := range f.Profiles {
		c.need(p != "", at("profiles", i), "is empty")
	}
	if f.Models.Repository == "" && f.runsModels() {
		for i, w := range f.Workers {
			if w.Backend.Kind == "onnx" {
				c.at(c.f.line(at("workers", i)+".backend.kind"), "models.repository",
					"is missing: workers[%d] runs models with backend onnx and needs their files", i)
				break
			}
		}
	}
}

func (c *checker) deviceTypes() {
	f := c.f
	c.need(len(f.DeviceTypes) > 0, "device_types", "is missing: list at least one kind of machine")
	seen := names{}
	for i, d := range f.DeviceTypes {
		path := at("device_types", i)
		c.name(seen, d.Name, path+".name")
		if !d.Part {
			c.need(d.Percent == 0, path+".percent", "belongs to parts of machines: write `part: true`, or leave it out")
			continue
		}
		for _, k := range []string{"price_per_hour", "tenure", "most", "accelerators"} {
			c.need(!f.has(path+"."+k), path+"."+k, "belongs to machines, and this is a part of one: leave it out")
		}
	}
}

func (c *checker) workers() {
	f := c.f
	c.need(len(f.Workers) > 0, "workers", "is missing: list at least one machine")
	types := f.machines()
	c.need(len(types) > 0 || len(f.DeviceTypes) == 0, "device_types",
		"are all parts: list the machines that they are parts of")
	seen := names{}
	total := 0
	for i, w := range f.Workers {
		path := at("workers", i)
		if w.Count < 1 || w.Count > maxWorkers {
			c.addf(path+".count", "is %d, want 1 to %d", w.Count, maxWorkers)
			continue
		}
		if total += w.Count; total > maxWorkers {
			c.addf(path+".count", "makes %d workers in all, more than %d", total, maxWorkers)
			return
		}
		c.name(seen, w.Name, path+".name")
		if w.Count > 1 {
			for n := range w.Count {
				seen.add(c, fmt.Sprintf("%s-%d", w.Name, n), path+".name")
			}
		}
		switch {
		case w.DeviceType == "" && len(types) > 0:
			c.addf(path+".device_type", "is missing: there is %s", oneOf(types))
		case w.DeviceType != "":
			at := slices.IndexFunc(f.DeviceTypes, func(d DeviceType) bool { return d.Name == w.DeviceType && d.Part })
			if at >= 0 {
				c.addf(path+".device_type", "%q is a part of a machine, and a worker is a whole one: there is %s",
					w.DeviceType, oneOf(types))
			} else {
				c.known(w.DeviceType, types, path+".device_type", "device type")
			}
		}
		c.backend(&w, path+".backend")
		c.accelerators(&w, path)
	}
}

// accelerators checks which accelerators a worker has.
func (c *checker) accelerators(w *Worker, path string) {
	at := slices.IndexFunc(c.f.DeviceTypes, func(d DeviceType) bool { return d.Name == w.DeviceType })
	if at < 0 {
		return // said elsewhere
	}
	d := &c.f.DeviceTypes[at]
	if n := len(w.Accelerators); n > 0 {
		c.need(n == d.Accelerators*w.Count, path+".accelerators", "names %d, but %d machines of device type %q have %d",
			n, w.Count, d.Name, d.Accelerators*w.Count)
	}
	c.need(d.Accelerators > 0 || !slices.Contains(w.Backend.Providers, "cuda"), path+".backend.providers",
		"lists cuda, but device type %q has no accelerators: write `accelerators: 1` there", d.Name)
}

func (c *checker) backend(w *Worker, path string) {
	b := &w.Backend
	if c.bad[path+".kind"] {
		return
	}
	c.processes(b, path)
	only := func(kind string, fields ...string) {
		if b.Kind == kind {
			return
		}
		for _, k := range fields {
			if c.f.has(path + "." + k) {
				c.addf(path+"."+k, "belongs to backend %s, but kind is %s", kind, b.Kind)
			}
		}
	}
	only("onnx", "providers", "provider_options", "pin_cores")
	c.need(len(b.ProviderOptions) == 0 || slices.Contains(b.Providers, "cuda"), path+".provider_options",
		"are options of the provider cuda, which providers does not list")
	only("openinference", "address", "addresses", "tls", "ca", "protocol", "load_models")
	only(kindSupplied, "command", "linger")
	c.supplied(b, path)
	only("fake", "latency", "latency_per_item", "load_time", "error_rate", "most_items", "seed")
	c.need(b.CA == "" || b.TLS, path+".ca", "has no effect without `tls: true`")
	if b.Kind != "openinference" {
		return
	}
	c.need(b.Protocol != "v1" || !b.LoadModels, path+".load_models", "is for protocol v2: servers of v1 load models "+
		"by themselves")
	switch {
	case b.Address != "" && len(b.Addresses) > 0:
		c.addf(path+".addresses", "give either address or addresses")
	case b.Address != "":
		c.hostPort(b.Address, path+".address", false)
		c.need(w.Count == 1, path+".address", "is one address for %d workers: list one for each in addresses", w.Count)
	case len(b.Addresses) > 0:
		c.need(len(b.Addresses) == w.Count, path+".addresses", "lists %d addresses for %d workers", len(b.Addresses),
			w.Count)
		for i, a := range b.Addresses {
			c.hostPort(a, at(path+".addresses", i), false)
		}
	default:
		c.addf(path+".address", "is missing: where does the server listen for gRPC, such as 127.0.0.1:8001?")
	}
}

func (c *checker) system(s *System, path string) {
	switch {
	case s.Name != "" && (s.Router != "" || s.Batcher != ""):
		c.addf(path+".name", "give either the name of a system, or router and batcher")
	case s.Name == "" && s.Router == "" && s.Batcher == "":
		c.addf(path, "is incomplete: give the name of a system, or router and batcher")
	case s.Name == "" && s.Router == "":
		c.addf(path+".router", "is missing: a composition needs router and batcher")
	case s.Name == "" && s.Batcher == "":
		c.addf(path+".batcher", "is missing: a composition needs router and batcher")
	}
}

func (c *checker) apps() {
	f := c.f
	c.models()
	c.need(len(f.Apps) > 0 || f.Store != "" || f.Models.Changes(), "apps",
		"is missing: list at least one app, or name a store for functions")
	for i, w := range f.Workers {
		c.need(f.Store == "" || w.Backend.Kind != "openinference" || w.Backend.LoadModels,
			at("workers", i)+".backend.load_models", "must be true with a store: its functions go to the server with "+
				"a load")
	}
	seen := names{}
	for i := range f.Apps {
		a, path := &f.Apps[i], at("apps", i)
		if c.name(seen, a.Name, path+".name") {
			// The name is part of URLs and of file names.
			if err := repository.CheckName(a.Name); err != nil {
				c.addf(path+".name", "%v", err)
			}
		}
		if !f.has(path + ".slo.latency") {
			c.addf(path+".slo.latency", "is missing: within which time is a query to be answered, such as 100ms?")
		}
		c.need(a.GiveUp == 0 || a.Late == "serve-late", path+".give_up",
			"needs late: serve-late; here late queries are dropped at once")
		c.instances(a.MinInstances, a.MaxInstances, path+".")
		c.need(a.Demand >= 0 && a.Demand <= limits.Demand, path+".demand",
			"is %v, want the queries/s that the app is expected to get, 0 to %g", a.Demand, limits.Demand)
		if _, err := a.Items.mix(); err != nil {
			c.addf(path+".items", "%v", err)
		}
		c.need(a.Queue == nil || len(a.Stages) == 0, path+".queue",
			"belongs to apps of one stage: write it at the stages")
		c.queue(a.Queue, path+".queue")
		for k := range a.Stages {
			c.queue(a.Stages[k].Queue, at(path+".stages", k)+".queue")
		}
		if a.System != nil {
			c.system(a.System, path+".system")
		}
		c.versionOf(a, path+".version_of")
		c.tensors(a.Inputs, path+".inputs")
		c.tensors(a.Outputs, path+".outputs")
		c.stages(a, path)
	}
}

// versionOf checks that clients can see an app as a version of another.
func (c *checker) versionOf(a *App, path string) {
	if a.VersionOf == "" {
		return
	}
	k := slices.IndexFunc(c.f.Apps, func(x App) bool { return x.Name == a.VersionOf })
	switch {
	case a.VersionOf == a.Name:
		c.addf(path, "is the app itself")
	case k < 0:
		c.addf(path, "there is no app %q", a.VersionOf)
	case c.f.Apps[k].VersionOf != "":
		c.addf(path, "app %q is a version of another itself", a.VersionOf)
	case len(a.Variants) != 1 || len(c.f.Apps[k].Variants) != 1:
		c.addf(path, "needs this app and app %q to have one variant each", a.VersionOf)
	}
}

func (c *checker) stages(a *App, path string) {
	f := c.f
	switch {
	case len(a.Variants) > 0 && len(a.Stages) > 0:
		c.addf(path+".stages", "give either variants, for an app of one stage, or stages")
		return
	case len(a.Variants) == 0 && len(a.Stages) == 0:
		c.addf(path+".variants", "is missing: list the models that can answer")
		return
	case len(a.Stages) > maxStages:
		c.addf(path+".stages", "lists %d stages, more than %d", len(a.Stages), maxStages)
		return
	}
	variants, stages := names{}, names{}
	for i, s := range f.stages(a, path) {
		if len(a.Stages) > 0 {
			c.name(stages, s.Name, s.path+".name")
			c.stage(&s, &a.Stages[i], len(a.Stages) == 1)
		}
		for j, v := range s.Variants {
			if s.Function != "" {
				c.name(variants, v.Name, s.path+".name")
			} else {
				c.variant(variants, &v, at(s.path+".variants", j))
			}
		}
		if len(s.Next) > maxStages {
			c.addf(s.path+".next", "feeds %d stages, more than %d", len(s.Next), maxStages)
			continue
		}
		for j, e := range s.Next {
			p := at(at(path+".stages", i)+".next", j)
			var others []string
			for k := range a.Stages {
				if k != i {
					others = append(others, a.Stages[k].Name)
				}
			}
			switch e.To {
			case "":
				c.addf(p+".to", "is missing: name the stage that is fed")
			case s.Name:
				c.addf(p+".to", "leads back to its own stage")
			default:
				c.known(e.To, others, p+".to", "stage of this app")
			}
			c.need(e.Rows != "" || !f.has(p+".rows"), p+".rows",
				"is empty: name the tensor whose rows become the items of %q, or leave it out", e.To)
			for k := range j {
				c.need(s.Next[k].To != e.To, p+".to", "stage %q is fed twice: add the fan_out of both", e.To)
			}
		}
	}
	if len(a.Stages) > 0 {
		if _, text := order(a.Stages); text != "" {
			c.addf(path+".stages", "%s", text)
		}
	}
}

func (c *checker) variant(seen names, v *Variant, path string) {
	if v.Name == "" {
		c.addf(path, "has neither name nor model")
		return
	}
	c.name(seen, v.Name, path+".name")
	if !c.python(v, path) {
		if err := repository.CheckName(v.Model); err != nil {
			c.addf(path+".model", "%v", err)
		}
	}
	if v.Version != "" {
		if n, err := strconv.ParseInt(v.Version, 10, 64); err != nil || n < 1 || strconv.FormatInt(n, 10) != v.Version {
			c.addf(path+".version", "is %q, want the name of a version directory: a number from 1", v.Version)
		}
	}
	if !(v.Accuracy >= 0 && v.Accuracy <= 1) {
		hint := ""
		if v.Accuracy > 1 && v.Accuracy <= 100 {
			hint = fmt.Sprintf(": for %v percent write %v", v.Accuracy, v.Accuracy/100)
		}
		c.addf(path+".accuracy", "is %v, want a number in [0, 1]%s", v.Accuracy, hint)
	}
	c.need(v.MaxBatch >= 1 || v.MaxBatch == 0 && !c.f.has(path+".max_batch"), path+".max_batch",
		"is %d, want at least 1", v.MaxBatch)
	c.need(v.MaxBatch <= repository.MaxMaxBatch, path+".max_batch", "is %d, want at most %d", v.MaxBatch,
		repository.MaxMaxBatch)
}

// order sorts stages topologically and keeps the order of the file where it can. problem is "", or says which stages
// have no order.
func order(stages []Stage) (sorted []int, problem string) {
	index := map[string]int{}
	for i, s := range stages {
		index[s.Name] = i
	}
	next := make([][]int, len(stages))
	for i, s := range stages {
		for _, e := range s.Next {
			if to, ok := index[e.To]; ok && to != i { // an edge to itself is reported on its own
				next[i] = append(next[i], to)
			}
		}
	}
	named := func(list []int) string {
		out := make([]string, len(list))
		for k, i := range list {
			out[k] = strconv.Quote(stages[i].Name)
		}
		return strings.Join(out, ", ")
	}
	sources := pipeline.Sources(next)
	switch {
	case len(sources) == 0:
		return nil, "every stage is fed by another: one must be the first"
	case len(sources) > 1:
		return nil, fmt.Sprintf("%d stages are fed by none (%s): only the first one may be, connect the others with "+
			"next", len(sources), named(sources))
	}
	sorted, stuck := pipeline.Order(next)
	if len(stuck) > 0 {
		return nil, "stages feed each other in a circle: look at " + named(stuck)
	}
	return sorted, ""
}

func (c *checker) tensors(list []Tensor, path string) {
	seen := names{}
	for i, t := range list {
		p := at(path, i)
		c.name(seen, t.Name, p+".name")
		if tensor.ParseDType(t.DataType) == tensor.Invalid {
			var all []string
			for d := tensor.Bool; d <= tensor.Bytes; d++ {
				all = append(all, d.String())
			}
			hint, _ := didYouMean(t.DataType, all)
			c.addf(p+".datatype", "is %q, want %s%s", t.DataType, oneOf(all), hint)
		}
		c.need(c.f.has(p+".shape") || t.Shape != nil, p+".shape", "is missing")
		for j, d := range t.Shape {
			c.need(d >= -1, at(p+".shape", j), "is %d, want -1 or a size", d)
		}
	}
}

func (c *checker) placement() {
	f := c.f
	var workers, apps []string
	for _, w := range f.Workers {
		workers = append(workers, w.Name)
		if w.Count > 1 && w.Count <= maxWorkers {
			for n := range w.Count {
				workers = append(workers, fmt.Sprintf("%s-%d", w.Name, n))
			}
		}
	}
	for _, a := range f.Apps {
		apps = append(apps, a.Name)
	}
	weighted := map[string]int{}
	for i, p := range f.Placement {
		path := at("placement", i)
		c.need(p.Worker != "", path+".worker", "is missing: name a worker or a group of workers")
		c.known(p.Worker, workers, path+".worker", "worker")
		if p.App == "" {
			c.addf(path+".app", "is missing: there is %s", oneOf(apps))
			continue
		}
		if !c.known(p.App, apps, path+".app", "app") {
			continue
		}
		a := slices.IndexFunc(f.Apps, func(a App) bool { return a.Name == p.App })
		s := c.placedStage(&p, &f.Apps[a], path)
		if s == nil {
			continue
		}
		key := p.App + "\x00" + s.Name
		if first, ok := weighted[key]; ok && (f.Placement[first].Weight > 0) != (p.Weight > 0) {
			c.addf(path+".weight",
				"placement[%d] of the same stage and this one differ in giving a weight: give it for all or for none",
				first)
		}
		if _, ok := weighted[key]; !ok {
			weighted[key] = i
		}
		var known []string
		for _, v := range s.Variants {
			known = append(known, v.Name)
		}
		for j, v := range p.Variants {
			c.known(v, known, at(path+".variants", j), "variant of this stage")
			c.need(!slices.Contains(p.Variants[:j], v), at(path+".variants", j), "%q is listed twice", v)
		}
	}
}

// placedStage returns the stage that a placement is for, or nil with a problem reported.
func (c *checker) placedStage(p *Placement, a *App, path string) *stageView {
	all := c.f.stages(a, "")
	var known []string
	for i := range all {
		if all[i].Name == p.Stage {
			return &all[i]
		}
		known = append(known, all[i].Name)
	}
	switch {
	case p.Stage == "" && len(all) == 1:
		return &all[0]
	case p.Stage == "":
		c.addf(path+".stage", "is missing: the app has %s", oneOf(known))
	default:
		c.known(p.Stage, known, path+".stage", "stage of this app")
	}
	return nil
}

func (c *checker) server() {
	s := &c.f.Server
	var open []string
	for _, x := range []struct{ key, address string }{{"http", s.HTTP}, {"grpc", s.GRPC}, {"admin", s.Admin}} {
		if x.address == "off" {
			continue
		}
		path := "server." + x.key
		if c.hostPort(x.address, path, true) && !strings.HasSuffix(x.address, ":0") {
			c.need(!slices.Contains(open, x.address), path, "%s is taken by another listener of this file", x.address)
			open = append(open, x.address)
		}
	}
	c.need(s.HTTP != "off" || s.GRPC != "off", "server.http", "http and grpc are both off: no client could connect")
	c.need((s.TLS.Cert == "") == (s.TLS.Key == ""), "server.tls", "give both cert and key, or neither")
	c.need(s.TLS.ClientCA == "" || s.TLS.Cert != "", "server.tls.client_ca", "has no effect without cert and key")
	c.need(!s.AdminAnywhere || s.AdminToken != "" || c.f.Access.Identifies(), "server.admin_anywhere",
		"needs server.admin_token, or callers who say who they are (access): any caller of the admin port "+
			"could change prices and functions")
	c.need(s.SharedMemory == "" || strings.HasPrefix(s.SharedMemory, "/") && !strings.Contains(s.SharedMemory[1:], "/"),
		"server.shared_memory", "is %q, want / and the beginning of names", s.SharedMemory)
	for i, o := range s.Origins {
		u, err := url.Parse(o)
		c.need(o == "*" || err == nil && u.Scheme != "" && u.Host != "" && u.Scheme+"://"+u.Host == o,
			at("server.origins", i), "is %q, want an origin such as https://example.org, or *", o)
	}
	c.tracing(&s.Tracing)
	l := &s.Limits
	c.need(l.Request >= 1<<10 && l.Request <= 2<<30-1, "server.limits.request", "is %v, want 1KiB to less than 2GiB",
		l.Request)
	c.need(l.Memory == 0 && !c.f.has("server.limits.memory") || l.Memory >= l.Request, "server.limits.memory",
		"is %v, want at least that of one request, %v", l.Memory, l.Request)
	c.need(l.JSON >= 1<<10 && l.JSON <= max(l.Request, 1<<10), "server.limits.json",
		"is %v, want 1KiB to that of a request, %v", l.JSON, l.Request)
	c.need(l.AllStates >= l.State, "server.limits.all_states", "is %v, want at least that of one state, %v",
		l.AllStates, l.State)
	c.need(l.ConnectionsPerAddress >= 1 || l.Connections < 1, "server.limits.connections_per_address",
		"is %d, want at least 1", l.ConnectionsPerAddress)
}

func (c *checker) telemetry() {
	t := &c.f.Telemetry
	c.need(len(t.LatencyBuckets) <= 100, "telemetry.latency_buckets", "lists %d buckets, want at most 100",
		len(t.LatencyBuckets))
	for i, b := range t.LatencyBuckets {
		if b <= 0 || i > 0 && b <= t.LatencyBuckets[i-1] {
			c.addf(at("telemetry.latency_buckets", i), "is %v: buckets must be above 0 and ascend", b)
			return
		}
	}
}

// need reports a problem at path unless ok.
func (c *checker) need(ok bool, path, format string, args ...any) {
	if !ok {
		c.addf(path, format, args...)
	}
}

// known reports a problem with a word that is not known, and whether it is known. An empty word is a problem only when
// the file gives it.
func (c *checker) known(word string, known []string, path, what string) bool {
	if slices.Contains(known, word) {
		return true
	}
	if word == "" && !c.f.has(path) {
		return false
	}
	hint := ""
	if len(known) <= maxHints {
		hint, _ = didYouMean(word, known)
	}
	if hint == "" && len(known) <= 20 {
		hint = ": there is " + oneOf(known)
	}
	c.addf(path, "there is no %s %q%s", what, word, hint)
	return false
}

// hostPort checks an address. Listeners may omit the host and use port 0.
func (c *checker) hostPort(s, path string, listen bool) bool {
	host, port, err := net.SplitHostPort(s)
	n, perr := strconv.Atoi(port)
	switch {
	case err != nil:
		c.addf(path, "is %q, want HOST:PORT, such as 127.0.0.1:8001", s)
	case perr != nil || n < 0 || n > 65535 || n == 0 && !listen:
		c.addf(path, "is %q: the port must be a number up to 65535", s)
	case host == "" && !listen:
		c.addf(path, "is %q: the host is missing", s)
	default:
		return true
	}
	return false
}

// names maps each name to the path where it was first used.
type names map[string]string

func (n names) add(c *checker, name, path string) bool {
	if first, ok := n[name]; ok {
		c.addf(path, "%q is already the name of %s", name, parent(first))
		return false
	}
	n[name] = path
	return true
}

// name checks that a name is not missing, not too long, and used once.
func (c *checker) name(seen names, name, path string) bool {
	switch {
	case name == "":
		c.addf(path, "is missing")
		return false
	case len(name) > 200 || strings.ContainsFunc(name, func(r rune) bool {
		return r < ' ' || r == 0x7f || r == 0xfffd
	}):
		c.addf(path, "is %.40q, want at most 200 bytes without control characters", name)
		return false
	}
	return seen.add(c, name, path)
}

// instances checks the least and the most instances of a stage. prefix is what the path of their settings begins with.
func (c *checker) instances(least, most int, prefix string) {
	c.need(most == 0 || least <= most, prefix+"max_instances", "is %d, less than min_instances, %d", most, least)
}
