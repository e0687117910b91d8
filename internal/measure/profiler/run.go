package profiler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
)

// point is one point that is being measured.
type point struct {
	subject            *profiledVariant
	batch, concurrency int
	samples            []float64 // microseconds
	spent              time.Duration
	look               int              // number of samples at which their exactness is looked at next
	scale              float64          // of a point of another length: the factor on the length; 0 for others
	own                *dataplane.Batch // the batch that such a point runs; nil before the first
	done               bool
}

// profiledVariant is one variant with its instance and points.
type profiledVariant struct {
	v       serving.VariantID
	name    string
	key     string
	bound   time.Duration
	load    *Load
	points  []*point
	results []Point
	lengths []LengthPoint
	source  *source
	batches map[int]*dataplane.Batch
	runner  dataplane.Runner
	memory  Memory
	failure *Failure // nil while it runs
	// reference is the length of the points. lengthened is set once points of others are listed.
	reference  int32
	lengthened bool
}

type profiler struct {
	cfg      Config
	rng      *rand.Rand
	begun    time.Time
	cold     bool          // instances are not warmed up
	lately   time.Duration // that the latest run took
	spares   int64         // bytes that spare processes took at most
	partial  *partial
	progress func(done, total int, what string)
	done     int
	total    int
}

// Run measures all that cfg asks for. progress, which may be nil, is called after every finished or skipped point with
// their number, the number of all points, and the name of the point; with cfg.Within after every sample, with the time
// that has passed and the time there is. A variant that cannot be run is left out, and the
// file's failures say why. When ctx ends, Run returns its error. Finished points are then in cfg.Partial, and the next
// Run with the same settings and models does not measure them again.
func Run(ctx context.Context, cfg Config, progress func(done, total int, what string)) (_ *File, err error) {
	part, err := openPartial(cfg.Partial)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, part.close()) }()
	p, subjects, err := begin(ctx, cfg, part, progress)
	if err != nil {
		return nil, err
	}
	for group := range slices.Chunk(subjects, p.cfg.LoadedVariants) {
		if err := p.measure(ctx, group); err != nil {
			return nil, err
		}
	}
	return p.file(subjects)
}

// begin lists what is to be measured.
func begin(ctx context.Context, cfg Config, part *partial, progress func(done, total int, what string)) (*profiler,
	[]*profiledVariant, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, nil, err
	}
	p := &profiler{cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 0x70726f66)), begun: time.Now(),
		partial: part, progress: progress}
	if p.progress == nil {
		p.progress = func(int, int, string) {}
	}
	var subjects []*profiledVariant
	for _, v := range cfg.oneOfEachName() {
		s, err := p.subject(v)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err != nil {
			s = &profiledVariant{v: v, name: cfg.Spec.Variants[v].Name}
			p.fail(s, 0, err)
		}
		subjects = append(subjects, s)
	}
	return p, subjects, nil
}

// end ends a point. how says why, where it was not measured.
func (p *profiler) end(q *point, how string) {
	q.done, q.samples = true, nil
	p.done++
	p.show(q.String() + how)
}

// show reports progress: how many points are done or, where the time for all is limited, how much of it has passed.
func (p *profiler) show(what string) {
	if limit := p.cfg.Within.Milliseconds(); limit > 0 && p.done < p.total {
		p.progress(int(min(time.Since(p.begun).Milliseconds(), limit)), int(limit), what)
		return
	}
	p.progress(p.done, p.total, what)
}

// device is the name of the device type.
func (p *profiler) device() string { return p.cfg.Spec.DeviceTypes[p.cfg.DeviceType].Name }

// file returns what was measured.
func (p *profiler) file(subjects []*profiledVariant) (*File, error) {
	f := &File{
		Version: Version, Created: time.Now().UTC().Truncate(time.Second), Host: p.cfg.Host,
		DeviceType: p.device(), Points: []Point{}, Loads: []Load{},
	}
	for _, s := range subjects {
		f.Points = append(f.Points, s.results...)
		f.Lengths = append(f.Lengths, s.lengths...)
		if s.load != nil {
			f.Loads = append(f.Loads, *s.load)
		}
		if s.memory.Loaded > 0 || s.memory.AtBatch > 0 || s.memory.Most > 0 {
			f.Memory = append(f.Memory, s.memory)
		}
		if s.failure != nil {
			f.Failures = append(f.Failures, *s.failure)
		}
	}
	if p.spares > 0 {
		f.Spares = append(f.Spares, SpareMemory{DeviceType: f.DeviceType, Bytes: p.spares})
	}
	f.sort()
	return f, f.Validate()
}

// oneOfEachName returns the variants to measure: of those of one name, which are the same model in several apps, the
// one with the largest batches.
func (c *Config) oneOfEachName() []serving.VariantID {
	var out []serving.VariantID
	at := make(map[string]int)
	for _, v := range c.Variants {
		name := c.Spec.Variants[v].Name
		k, have := at[name]
		switch {
		case !have:
			at[name] = len(out)
			out = append(out, v)
		case c.maxBatch(v) > c.maxBatch(out[k]):
			out[k] = v
		}
	}
	return out
}

// subject lists the points of a variant and takes over those that are finished.
func (p *profiler) subject(v serving.VariantID) (*profiledVariant, error) {
	key, err := p.cfg.key(v)
	if err != nil {
		return nil, err
	}
	src, err := newSource(&p.cfg, v)
	if err != nil {
		return nil, err
	}
	s := &profiledVariant{
		v: v, name: p.cfg.Spec.Variants[v].Name, key: key, bound: p.cfg.Bound(v), source: src,
		batches: map[int]*dataplane.Batch{},
	}
	s.memory = Memory{Variant: s.name, DeviceType: p.device()}
	if m, ok := p.partial.memory[key]; ok {
		s.memory = m
	}
	if l, ok := p.partial.loads[key]; ok {
		s.load = &l
	}
	limit := p.cfg.maxBatch(v)
	if !src.batched {
		limit = 1
	}
	for c := 1; c <= p.cfg.Slots; c++ {
		for _, n := range batchSizes(limit) {
			pt := &point{subject: s, batch: n, concurrency: c}
			s.points = append(s.points, pt)
			p.total++
			if r, ok := p.partial.points[key][pointKey{s.name, p.device(), n, c}]; ok {
				s.results = append(s.results, r)
				pt.done = true
				p.done++
			}
		}
	}
	for _, r := range s.results {
		p.dropSlower(&point{subject: s, batch: r.Batch, concurrency: r.Concurrency}, r.Mean)
	}
	return s, nil
}

// dropSlower skips the points that are certainly slower than q, if q takes longer than the bound.
func (p *profiler) dropSlower(q *point, us float64) {
	s := q.subject
	if s.bound <= 0 || micros(us) <= s.bound || q.scale != 0 {
		return
	}
	for _, o := range s.points {
		if !o.done && o != q && o.batch >= q.batch && o.concurrency >= q.concurrency &&
			(o.batch > q.batch || o.concurrency > q.concurrency) {
			p.end(o, ": skipped, too slow")
		}
	}
}

func (q *point) String() string {
	if q.scale != 0 {
		return fmt.Sprintf("%s batch %d, %gx as long", q.subject.name, q.batch, q.scale)
	}
	return fmt.Sprintf("%s batch %d concurrency %d", q.subject.name, q.batch, q.concurrency)
}

// measure launches a group of variants and lets their points take turns until all are exact enough.
func (p *profiler) measure(ctx context.Context, group []*profiledVariant) (err error) {
	defer func() {
		for _, s := range group {
			if s.runner != nil {
				err = errors.Join(err, s.runner.Close())
				s.runner = nil
			}
			s.batches = nil
		}
	}()
	var open []*point
	for _, s := range group {
		mine := slices.DeleteFunc(slices.Clone(s.points), func(q *point) bool { return q.done })
		if s.failure != nil || len(mine) == 0 && s.load != nil && s.source.length == nil {
			continue
		}
		if err := p.launch(ctx, s); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			p.fail(s, 0, err)
			continue
		}
		if s.source.guessable() && (len(mine) > 0 || s.source.length != nil) {
			if err := p.findInputs(ctx, s, 1, 0); ctx.Err() != nil {
				return ctx.Err()
			} else if err != nil {
				p.fail(s, 1, err)
			}
		}
		open = append(open, slices.DeleteFunc(mine, func(q *point) bool { return q.done })...)
	}
	for _, s := range group {
		open = append(open, p.lengthPoints(s, open)...)
	}
	for first := true; len(open) > 0; first = false {
		p.rng.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
		if first {
			// Small batches first, so that those far above the bound never run.
			slices.SortStableFunc(open, func(a, b *point) int { return cmp.Compare(a.batch, b.batch) })
		}
		for _, q := range open {
			if q.done {
				continue
			}
			if p.cfg.Await != nil {
				if err := p.cfg.Await(ctx); err != nil {
					return err
				}
			}
			if err := p.runAnother(ctx, open, group); err != nil {
				return err
			}
			err := p.takeTurn(ctx, q)
			if errors.Is(err, dataplane.ErrOutOfMemory) && q.scale == 0 && p.dropTooLarge(q) {
				if err := p.partial.add(partialRecord{Key: q.subject.key, Memory: &q.subject.memory}); err != nil {
					return err
				}
				continue
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil && q.scale != 0 {
				p.rescale(q, err)
				continue
			}
			if err != nil && !p.mended(ctx, q) {
				p.failPoint(q, err)
			}
			if err != nil {
				continue
			}
			if err := p.finish(q); err != nil {
				return err
			}
			if p.cfg.Within > 0 && !q.done {
				p.show(q.String())
			}
		}
		open = slices.DeleteFunc(open, func(q *point) bool { return q.done })
		for _, s := range group {
			open = append(open, p.lengthPoints(s, open)...)
		}
	}
	return nil
}

// runAnother has another variant of the group run, as often as it would if all points were still open, where those that
// are open are of one variant: it would else find its weights in the caches more often than the first points did.
func (p *profiler) runAnother(ctx context.Context, open []*point, group []*profiledVariant) error {
	only := open[0].subject
	if slices.ContainsFunc(open, func(q *point) bool { return q.subject != only }) {
		return nil
	}
	s := group[p.rng.IntN(len(group))]
	if s == only || s.runner == nil || s.failure != nil {
		return nil
	}
	b, err := s.batchOf(s.points[0].batch)
	if err == nil {
		err = s.runner.Run(ctx, copyOf(b))
	}
	if err != nil && ctx.Err() == nil {
		p.fail(s, s.points[0].batch, err)
	}
	return ctx.Err()
}

// failPoint drops a point that fails, and those that would fail for the same reason.
func (p *profiler) failPoint(q *point, err error) {
	if q.concurrency == 1 {
		p.fail(q.subject, q.batch, err)
		return
	}
	for _, o := range q.subject.points {
		if !o.done && o.concurrency >= q.concurrency {
			p.end(o, fmt.Sprintf(": skipped, it fails: %v", err))
		}
	}
}

// batchOf returns a batch of the variant, the same one whenever it is asked for a size.
func (s *profiledVariant) batchOf(items int) (*dataplane.Batch, error) {
	b := s.batches[items]
	if b == nil {
		var err error
		if b, err = s.source.batch(items); err != nil {
			return nil, err
		}
		s.batches[items] = b
	}
	return b, nil
}

// takeTurn measures a point for one turn. It drops slower points as soon as two samples show that this one is too slow.
func (p *profiler) takeTurn(ctx context.Context, q *point) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.turn(ctx, q); err != nil {
			return err
		}
		fastest := slices.Min(q.samples)
		if s := q.subject; s.bound <= 0 || micros(fastest) <= s.bound {
			return nil
		}
		if len(q.samples) >= 2 {
			p.dropSlower(q, fastest)
			return nil
		}
	}
}

func (p *profiler) launch(ctx context.Context, s *profiledVariant) error {
	limit := 1
	for _, q := range s.points {
		limit = max(limit, q.batch)
	}
	if s.load == nil {
		if err := p.settle(ctx, s); err != nil {
			return err
		}
		// A launch for all measured sizes would warm up, for seconds, batches that no plan allows.
		start := time.Now()
		r, _, took, err := p.bringWithin(ctx, s, 1)
		if err != nil {
			return err
		}
		s.load = &Load{
			Variant: s.name, DeviceType: p.device(),
			Load: float64(time.Since(start)) / 1e6,
		}
		s.memory.Loaded = took
		if err := errors.Join(p.partial.add(partialRecord{Key: s.key, Load: s.load}), r.Close()); err != nil {
			return err
		}
	}
	r, fits, took, err := p.bringWithin(ctx, s, limit)
	if err != nil {
		return err
	}
	s.runner = r
	if err := p.waitForSpares(ctx); err != nil { // their start would disturb what is measured
		return err
	}
	if took > 0 {
		s.memory.Batch, s.memory.AtBatch = fits, max(took, s.memory.Loaded)
	}
	for _, q := range s.points {
		if !q.done && q.batch > fits {
			p.dropTooLarge(q)
		}
	}
	return p.partial.add(partialRecord{Key: s.key, Memory: &s.memory})
}

// settle has spare processes wait for a variant, where the backend keeps some.
func (p *profiler) settle(ctx context.Context, s *profiledVariant) error {
	if p.cfg.Spares == nil {
		return nil
	}
	r, _, _, err := p.bringWithin(ctx, s, 1) // they learn from it what to wait with
	if err == nil {
		err = errors.Join(p.waitForSpares(ctx), r.Close())
	}
	return err
}

// waitForSpares waits until spare processes wait, and notes what they take.
func (p *profiler) waitForSpares(ctx context.Context) error {
	if p.cfg.Spares == nil {
		return nil
	}
	err := p.cfg.Spares.Settle(ctx)
	p.spares = max(p.spares, p.cfg.Spares.SpareMemory())
	return err
}

// finish ends a point that is exact enough, and drops points that are too slow because of it.
func (p *profiler) finish(q *point) error {
	if !p.exactEnough(q) {
		return nil
	}
	if q.scale != 0 {
		if r, ok := q.lengthResult(p.device()); ok {
			q.subject.lengths = append(q.subject.lengths, r)
		}
		p.end(q, "")
		return nil
	}
	r := q.result(p.device())
	if err := p.partial.add(partialRecord{Key: q.subject.key, Point: &r}); err != nil {
		return err
	}
	q.subject.results = append(q.subject.results, r)
	p.end(q, "")
	p.dropSlower(q, r.Mean)
	return nil
}

// late reports whether the time for all points has passed.
func (p *profiler) late() bool { return p.cfg.Within > 0 && time.Since(p.begun) >= p.cfg.Within }

// exactEnough reports whether a point needs no more samples.
func (p *profiler) exactEnough(q *point) bool {
	n := len(q.samples)
	if n >= p.cfg.MaxSamples || n > 0 && (q.spent >= p.cfg.MaxTime || p.late()) {
		return true
	}
	if n < max(p.cfg.MinSamples, q.look) {
		return false
	}
	q.look = n + n/20 + 1 // sorting all samples after each would take longer than quick models do
	mean, stddev := moments(q.samples)
	return meanWidth(n, mean, stddev) <= p.cfg.MeanWidth && quantileWidth(q.samples, 0.95) <= p.cfg.P95Width
}

func (q *point) result(device string) Point {
	mean, stddev := moments(q.samples)
	values := make([]time.Duration, len(q.samples))
	for i, us := range q.samples {
		values[i] = micros(us)
	}
	ps := report.PercentilesOf(values) // in milliseconds
	return Point{
		Variant: q.subject.name, DeviceType: device, Batch: q.batch, Concurrency: q.concurrency,
		Samples: len(q.samples),
		Mean:    nanos(mean), StdDev: nanos(stddev), P50: nanos(ps.P50 * 1e3), P90: nanos(ps.P90 * 1e3),
		P95: nanos(ps.P95 * 1e3), P99: nanos(ps.P99 * 1e3),
	}
}

// nanos rounds microseconds to whole nanoseconds, the resolution of the clock.
func nanos(us float64) float64 { return math.Round(us*1e3) / 1e3 }
