package measuring

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/machines"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/internal/measure/samples"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// Judging are the options of [MeasureAccuracy].
type Judging struct {
	Samples string // folder of samples
	// App and Stage are what they are for; empty for the only stage with several variants, or the only one.
	App, Stage string
	Most       int // samples at most; 0 for DefaultSamples
	// Score is a command that scores answers; empty compares them with labels.
	Score string
	// Agree compares the answers with those of the most accurate variant, in place of labels.
	Agree bool
	// Reference is that variant; empty takes the one with the highest accuracy in the configuration.
	Reference string
}

// DefaultSamples is how many samples are used where nobody says: they tell a proportion to a percentage point.
const DefaultSamples = 10_000

// judgedBatch is how many samples run at once.
const judgedBatch = 8

// Judged is what samples have shown of the variants of a stage.
type Judged struct {
	Accuracies  []profiler.Accuracy
	Confidences []profiler.Confidence
}

// MeasureAccuracy runs every variant of a stage on samples and judges its answers.
func MeasureAccuracy(ctx context.Context, o *host.Opened, how Judging) (*Judged, error) {
	if how.Most <= 0 {
		how.Most = DefaultSamples
	}
	folder, err := openJudged(how.Samples, how.Most)
	if err != nil {
		return nil, fault.Wrap(fault.Usage, err)
	}
	defer folder.close()
	if how.Score == "" && !how.Agree && !folder.labelled() {
		return nil, fault.Errorf(fault.Usage, "%s: not every sample has a label: want LABEL/FILE, or labels.csv with "+
			"FILE,LABEL on each line; without labels use --agree, or --score", how.Samples)
	}
	stage, err := judgedStage(o, how.App, how.Stage)
	if err != nil {
		return nil, err
	}
	run, err := o.Fleet().Backends(nil)
	if err != nil {
		return nil, err
	}
	defer run.Close()
	variants := slices.Clone(o.Spec().Stages[stage].Variants)
	reference := serving.VariantID(serving.None)
	if how.Agree {
		if reference, err = referenceOf(o, variants, how.Reference); err != nil {
			return nil, err
		}
		// It goes first: the others are compared with it.
		slices.SortStableFunc(variants, func(a, b serving.VariantID) int {
			return map[bool]int{true: -1}[a == reference] - map[bool]int{true: -1}[b == reference]
		})
	}
	j := &judge{
		opened: o, run: run, folder: folder, how: how, ctx: ctx,
		scores: make(map[string][]float64), sure: make(map[string][]float32),
	}
	out := &Judged{}
	for k, v := range variants {
		o.Options().Progress(float64(k)/float64(len(variants)), "judging "+o.Spec().Variants[v].Name)
		a, err := j.variant(v, reference)
		if err != nil {
			return nil, fmt.Errorf("variant %q: %w", o.Spec().Variants[v].Name, err)
		}
		if a.How != "" {
			out.Accuracies = append(out.Accuracies, a)
		}
	}
	for _, v := range variants {
		name := o.Spec().Variants[v].Name
		if len(j.sure[name]) != folder.len() || len(variants) == 1 {
			continue
		}
		if c, ok := profiler.Calibrate(name, "", serving.ByMargin.String(), j.sure[name], j.scores); ok {
			out.Confidences = append(out.Confidences, c)
		}
	}
	return out, nil
}

// judgedStage is the stage that samples are for.
func judgedStage(o *host.Opened, app, stage string) (serving.StageID, error) {
	spec := o.Spec()
	var fit, several []serving.StageID
	for s := range spec.Stages {
		x := &spec.Stages[s]
		if app != "" && spec.Apps[x.App].Name != app || stage != "" && x.Name != stage {
			continue
		}
		fit = append(fit, serving.StageID(s))
		if len(x.Variants) > 1 {
			several = append(several, serving.StageID(s))
		}
	}
	if len(several) > 0 {
		fit = several
	}
	if len(fit) == 1 {
		return fit[0], nil
	}
	var names []string
	for _, s := range fit {
		x := &spec.Stages[s]
		names = append(names, fmt.Sprintf("--app %s --stage %s", spec.Apps[x.App].Name, x.Name))
	}
	if len(names) == 0 {
		return 0, fault.Errorf(fault.Usage, "there is no stage %q of an app %q: of which --app, or which --stage of "+
			"it, are the samples?", stage, app)
	}
	return 0, fault.Errorf(fault.Usage, "say which stage the samples are for: %s", strings.Join(names, ", or "))
}

// referenceOf is the variant that others are compared with.
func referenceOf(o *host.Opened, variants []serving.VariantID, name string) (serving.VariantID, error) {
	best := variants[0]
	for _, v := range variants {
		x := &o.Spec().Variants[v]
		if name != "" && x.Name == name {
			return v, nil
		}
		if x.Accuracy > o.Spec().Variants[best].Accuracy {
			best = v
		}
	}
	if name != "" {
		return 0, fault.Errorf(fault.Usage, "the stage has no variant %q", name)
	}
	if o.Spec().Variants[best].Accuracy == 0 {
		return 0, fault.Errorf(fault.Usage, "no variant of the stage has an accuracy: say by --reference which is the "+
			"most accurate")
	}
	return best, nil
}

// judge judges variants.
type judge struct {
	opened *host.Opened
	run    *machines.Backends
	folder *judgedSamples
	how    Judging
	ctx    context.Context
	said   [][]tensor.Tensor // by sample, the answers of the reference
	// By variant and sample: how right its answer was, and how sure the variant was of it; without the latter where
	// some answer does not tell.
	scores map[string][]float64
	sure   map[string][]float32
}

// variant judges one. An accuracy without How is that of the reference itself, which is not measured by agreement.
func (j *judge) variant(v, reference serving.VariantID) (a profiler.Accuracy, err error) {
	o := j.opened
	a = profiler.Accuracy{Variant: o.Spec().Variants[v].Name, Samples: j.folder.len()}
	var score *scorer
	if j.how.Score != "" {
		a.How = profiler.ByScore
		if score, err = startScorer(j.ctx, j.how.Score); err != nil {
			return a, err
		}
		defer func() { err = errors.Join(err, score.close()) }()
	}
	sum := 0.0
	err = j.answers(v, func(k int, outputs []tensor.Tensor) error {
		x, err := 0.0, error(nil)
		switch {
		case score != nil:
			of := j.folder.sample(k)
			x, err = score.score(&of, a.Variant, outputs)
		case !j.how.Agree:
			var right bool
			if right, err = j.right(v, k, outputs); right {
				x = 1
			}
		case v == reference:
			j.said = append(j.said, outputs)
			x = 1
		case samples.Agree(j.said[k], outputs):
			x = 1
		}
		sum += x
		j.scores[a.Variant] = append(j.scores[a.Variant], x)
		if sure, ok := dataplane.Confidence(j.sure[a.Variant], outputs, 1, "", serving.ByMargin); ok {
			j.sure[a.Variant] = sure
		}
		return err
	})
	switch {
	case score != nil:
	case !j.how.Agree:
		a.How = profiler.ByLabels
	case v != reference:
		a.How, a.Reference = profiler.ByAgreement, o.Spec().Variants[reference].Name
	}
	a.Value = sum / float64(j.folder.len())
	return a, err
}

// right reports whether an answer is the class that a sample's label names.
func (j *judge) right(v serving.VariantID, k int, outputs []tensor.Tensor) (bool, error) {
	if sent := j.folder.sent; sent != nil {
		got := sent.Right(outputs, j.folder.at(k), 1)
		if got.Items == 0 {
			return false, fault.Errorf(fault.Usage, "the output that samples.json names says no class")
		}
		return got.Whole, nil
	}
	at := samples.Decides(outputs)
	if at < 0 {
		return false, fault.Errorf(fault.Usage, "no output says a class: give a command that scores answers, --score")
	}
	var names []string
	if m := j.opened.Tables().Variants[v].Described; m != nil {
		names = m.Labels[outputs[at].Name]
	}
	want, err := j.folder.folder.Class(j.folder.folder.Samples[k].Label, names)
	if err != nil {
		return false, err
	}
	got, ok := samples.Class(outputs[at].DType, outputs[at].Data)
	return ok && got == want, nil
}

// answers runs a variant on all samples, in batches, and calls do with the answer to each.
func (j *judge) answers(v serving.VariantID, do func(k int, outputs []tensor.Tensor) error) error {
	ctx, done := context.WithTimeout(j.ctx, machines.RemoteTimeout)
	tensors, err := j.run.Describe(ctx, v)
	done()
	if err != nil {
		return err
	}
	size := 1
	if tensors.Batched {
		size = max(1, min(judgedBatch, j.opened.Spec().Variants[v].MaxBatch))
	}
	runner, err := j.launch(v, size)
	if err != nil {
		return err
	}
	defer func() { _ = runner.Close() }()
	all := j.folder.len()
	for first := 0; first < all; first += size {
		n := min(size, all-first)
		b := &dataplane.Batch{ID: 1, Variant: v, Items: n, Portions: make([]dataplane.Portion, n)}
		for k := range n {
			p := &b.Portions[k]
			p.Query, p.Items = serving.QueryID(k+1), 1
			if p.Inputs, err = j.folder.inputs(first+k, tensors.Inputs, tensors.Batched); err != nil {
				return fault.Wrap(fault.Usage, err)
			}
		}
		if err := runner.Run(j.ctx, b); err != nil {
			return fmt.Errorf("on %s: %w", j.folder.sample(first).File, err)
		}
		for k := range n {
			if err := do(first+k, b.Portions[k].Outputs); err != nil {
				return err
			}
		}
	}
	return nil
}

// launch brings a variant up on the first worker that can run it.
func (j *judge) launch(v serving.VariantID, size int) (dataplane.Runner, error) {
	sites, _ := j.opened.Fleet().Sites()
	for _, s := range sites {
		if slices.Contains(s.Variants, v) {
			return j.run.Of(s.Worker).Launch(j.ctx, dataplane.InstanceSpec{
				ID: 1, Worker: s.Worker, DeviceType: s.Device,
				Variants: []serving.VariantID{v}, BatchLimit: size, Slots: 1, Cores: s.Cores,
			})
		}
	}
	return nil, fault.Errorf(fault.Config, "no worker of %s runs it", j.opened.Name())
}
