package server

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/machines"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/internal/models/repository"
	"github.com/sluice-serving/sluice/internal/models/repository/pb"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/pipeline"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/tensor"
)

// definition is what a model of the repository is to be served as, with identifiers of its own.
type definition struct {
	opened *host.Opened
	tables *config.Resolved
	parts  []string
	print  string // "" for what a client has sent
	sent   bool   // a client has sent a configuration or files
	temp   string // folder of files that a client has sent; "" for none
	// imported tells that nobody wrote down an objective, and written is what the file says of its apps elsewhere.
	imported bool
	written  []config.App
	judged   string               // see judgedOf
	measured serving.Measurements // of the file's profiles
	repo     *repository.Repository
	failed   map[host.VariantOn]*profiler.Failure // why looks at it failed
}

func (d *definition) close() { _ = d.repo.Close() }

// backends describe models from what the repository says of them. They run nothing.
func (d *definition) backends() *machines.Backends {
	return &machines.Backends{Fleet: d.opened.Fleet()}
}

// define reads a model of the repository, or what a client has sent in its place. The models of whole are known not to
// batch.
func (c *catalog) define(name string, how server.Loading, whole map[string]bool) (_ *definition, err error) {
	if err := repository.CheckName(name); err != nil {
		return nil, oip.Errorf(oip.Invalid, "", "%v", err)
	}
	d := &definition{
		sent: how.Config != nil || len(how.Files) > 0, failed: make(map[host.VariantOn]*profiler.Failure),
	}
	given, err := how.ModelConfig(name)
	if err != nil {
		return nil, err
	}
	if len(how.Files) > 0 {
		if d.temp, err = c.put(name, given, &how); err != nil {
			return nil, err
		}
		d.repo, err = repository.Open(d.temp)
	} else {
		d.repo, err = c.open()
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			d.close()
			if d.temp != "" {
				_ = os.RemoveAll(d.temp)
			}
		}
	}()
	if given != nil && d.temp == "" {
		d.repo.Override(name, given)
	}
	for model := range whole {
		d.repo.Whole(model)
	}
	f := c.current()
	if d.written = c.written(name); len(d.written) > 0 {
		f = f.Only(name).WithWhole(whole)
	} else {
		d.imported = true
		text, notes, err := config.ImportTriton(d.repo.Dir(), c.base.Name(), config.Importing{
			Here: true, Only: name, Repository: d.repo,
		})
		if err != nil {
			return nil, asNotFound(d.repo, name, err)
		}
		for _, n := range notes {
			c.log.Warn(n)
		}
		if f, err = config.Parse(text, c.base.Name()); err != nil {
			return nil, err
		}
	}
	if d.tables, err = f.ResolveFrom(d.repo); err != nil && !d.imported {
		return nil, oip.Errorf(oip.Invalid, "", "%v", err)
	} else if err != nil {
		return nil, asNotFound(d.repo, name, err)
	}
	d.parts = partsOf(f, name)
	if !d.sent {
		if d.print, err = printOf(d.repo, d.parts); err != nil {
			return nil, asNotFound(d.repo, name, err)
		}
	}
	d.opened = c.base.WithFile(f, d.tables).WithoutLeftOut()
	if !d.imported {
		err = c.judge(d)
	}
	return d, err
}

// judge takes up what profiles say of the apps of a file: measurements, accuracies and confidences. It fails where they
// ask for another system.
func (c *catalog) judge(d *definition) error {
	for a := range d.tables.Apps {
		if was := c.base.Tables().Apps; len(was) > 0 && !reflect.DeepEqual(d.tables.Apps[a].System, was[0].System) {
			return oip.Errorf(oip.Invalid, "", "app %q asks for another system than the server runs: restart it",
				d.tables.Spec.Apps[a].Name)
		}
	}
	if len(d.tables.Profiles) > 0 {
		p, err := d.opened.Profile()
		if err != nil {
			return err
		}
		d.opened, d.tables, d.measured = p.Opened, p.Tables(), p.Measurements()
	}
	all := make([]serving.AppID, len(d.tables.Spec.Apps))
	for a := range all {
		all[a] = serving.AppID(a)
	}
	d.judged = judgedOf(d.tables.Spec, all)
	return nil
}

// judgedOf is what is known of how accurate the variants of apps are, as a text without their identifiers.
func judgedOf(spec *serving.Spec, apps []serving.AppID) string {
	var b strings.Builder
	for _, a := range apps {
		for _, s := range spec.Apps[a].Stages {
			for _, v := range spec.Stages[s].Variants {
				fmt.Fprintln(&b, spec.Variants[v].Name, spec.Variants[v].Accuracy)
			}
			for _, c := range spec.Stages[s].Confidences {
				fmt.Fprintln(&b, spec.Variants[c.Variant].Name, c.Output, c.By)
				for _, bin := range c.Bins {
					fmt.Fprintln(&b, bin.From, bin.Share, bin.Accuracy)
					for _, o := range bin.Others {
						fmt.Fprintln(&b, spec.Variants[o.Variant].Name, o.Accuracy)
					}
				}
			}
		}
	}
	return b.String()
}

// asNotFound is the error for a model that cannot be read: NotFound when there is none.
func asNotFound(repo *repository.Repository, name string, err error) error {
	if _, missing := repo.Fingerprint(name); errors.Is(missing, repository.ErrNotFound) {
		return oip.Errorf(oip.NotFound, "", "there is no model '%.200s'", name)
	}
	return oip.Errorf(oip.Invalid, "", "%v", err)
}

// put writes a model that a client has sent as a repository of its own, and returns its folder. Runtimes read models
// from files.
func (c *catalog) put(name string, given *pb.ModelConfig, how *server.Loading) (_ string, err error) {
	if c.temp == "" {
		if c.temp, err = os.MkdirTemp("", "sluice-models-"); err != nil {
			return "", err
		}
	}
	c.latest++
	dir := filepath.Join(c.temp, strconv.Itoa(c.latest))
	return dir, how.Put(dir, name, given)
}

// errUnbatched has the models of a definition that were found not to batch.
type errUnbatched struct{ models map[string]bool }

func (e *errUnbatched) Error() string { return "models do not batch" }

// lookAt looks at variants of a definition in a grown spec, as at the start of a server. It fails when one cannot be
// loaded, and with errUnbatched when one is to be read anew.
func (c *catalog) lookAt(ctx context.Context, spec *serving.Spec, at *serving.Placed, d *definition,
	variants []serving.VariantID) (out serving.Measurements, err error) {
	sites, _ := c.base.Fleet().Sites()
	for _, s := range sites {
		x := c.measuring(s, at, d)
		x.Spec, x.Variants = spec, variants
		f, err := profiler.Look(ctx, x, loadLook, nil)
		if err != nil {
			return out, oip.Errorf(oip.Internal, "", "it cannot be run: %v", err)
		}
		if names := d.opened.Unbatched(f); len(names) > 0 {
			return out, &errUnbatched{d.opened.ModelsOf(names)}
		}
		for _, v := range variants {
			failed := f.Failure(spec.Variants[v].Name, spec.DeviceTypes[s.Device].Name)
			switch {
			case failed == nil || failed.Batch > 1:
			case failed.Batch == 0:
				return out, oip.Errorf(oip.Internal, "", "it cannot be run: %s", failed.Reason)
			default:
				c.log.Warn(host.UnmeasuredText(failed))
				d.failed[host.VariantOn{Variant: failed.Variant, Device: failed.DeviceType}] = failed
				out.Latency = append(out.Latency, host.AssumedPoint(spec, v, s.Device))
			}
		}
		if out, err = (&refined{placesOf(spec, x.Variants), "", f}).over(spec, out); err != nil {
			return out, err
		}
	}
	return out, nil
}

// loadLook is about how long a load looks at a model, beside the time to load it and to run it once.
const loadLook = 50 * time.Millisecond

// measuring returns the configuration of the measurements of a definition's variants, without the spec.
func (c *catalog) measuring(s machines.Site, at *serving.Placed, d *definition) profiler.Config {
	of := func(v serving.VariantID) serving.VariantID { return serving.VariantID(slices.Index(at.Variants, v)) }
	return profiler.Config{Backend: c.run.Of(s.Worker), DeviceType: s.Device, Worker: s.Worker,
		Slots: 1, Cores: s.Cores, Host: c.run.ThisHost(),
		Tensors: func(v serving.VariantID) ([]tensor.Spec, bool, error) {
			t, err := d.describe(of(v))
			return t.Inputs, t.Batched, err
		},
		Length:    func(v serving.VariantID) *tensor.Length { return d.tables.Variants[of(v)].Length },
		ModelFile: func(v serving.VariantID) string { return d.tables.Variants[of(v)].Path },
		Unsure:    func(v serving.VariantID) bool { return d.opened.Fleet().SeemsBatched(of(v)) },
		RandomBatch: func(rng *rand.Rand, v serving.VariantID, items int) ([]dataplane.Portion, error) {
			return d.backends().OwnInputs(rng, of(v), items)
		},
		Identity: func(v serving.VariantID) string { return d.opened.Fleet().FunctionIdentity(of(v)) },
	}
}

// refineLater has the variants of an entry that are to be measured better measured while the server is idle.
func (c *catalog) refineLater(spec *serving.Spec, e *catalogEntry, d *definition) {
	at := e.at
	sites, _ := c.base.Fleet().Sites()
	for _, s := range sites {
		for _, v := range e.later {
			cell := host.VariantOn{Variant: spec.Variants[v].Name, Device: spec.DeviceTypes[s.Device].Name}
			c.refiner.add(cell, s.Device, unrefined{
				opened: d.opened, variants: placesOf(spec, []serving.VariantID{v}),
				config: func(context.Context) (profiler.Config, func(*profiler.File)) {
					return c.measuring(s, at, d), func(*profiler.File) {}
				}}, d.failed[cell])
		}
	}
}

// describe returns the tensors of a variant.
func (d *definition) describe(v serving.VariantID) (machines.Tensors, error) {
	b := &d.tables.Variants[v]
	if b.Inputs != nil {
		return machines.Tensors{Inputs: b.Inputs, Outputs: b.Outputs, Batched: b.Batched}, nil
	}
	ctx, done := context.WithTimeout(context.Background(), machines.RemoteTry)
	defer done()
	return d.backends().Describe(ctx, v)
}

// proposeObjectives gives apps for which nobody wrote down an objective one that follows from measurements.
func (c *catalog) proposeObjectives(spec *serving.Spec, at *serving.Placed, d *definition,
	m serving.Measurements) error {
	if !d.imported {
		return nil
	}
	statistic, err := profile.ParseStatistic(host.PlannedStatistic)
	if err != nil {
		return err
	}
	table, err := profile.NewTable(spec, m, statistic)
	if err != nil {
		return err
	}
	for _, a := range at.Apps {
		spec.Apps[a].SLO.Latency = profile.Objective(spec, table, a, 1)
	}
	return nil
}

// wiredAt is the wiring of a definition's stages, by their identifiers in the grown spec.
func wiredAt(spec *serving.Spec, wiring []pipeline.Wiring, at *serving.Placed) []pipeline.Wiring {
	out := make([]pipeline.Wiring, len(spec.Stages))
	for k := range wiring {
		out[at.Stages[k]] = wiring[k]
	}
	return out
}

// pollEvery is how often the repository is looked at; 0 for never.
func pollEvery(o *host.Opened) time.Duration {
	if o.File().Models.Control != config.ControlPoll {
		return 0
	}
	return time.Duration(o.File().Models.Poll)
}
