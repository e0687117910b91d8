package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
)

func init() {
	register(command{"measure", "measure a model on this machine, and write what a Profile says of it", runMeasure})
}

// measuredApp is the app of the configuration that a model is measured with, and measuredWithin its objective: a bound
// that no model exceeds.
const (
	measuredApp    = "measured"
	measuredOn     = "here"
	measuredWithin = time.Hour
)

// runMeasure has `sluice profile` measure one model. The result is the spec of a Profile as JSON, without what it was
// measured for: who asked knows that.
func runMeasure(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("measure", flag.ContinueOnError)
	models := fs.String("models", "", "`folder` of models, a folder of its name each")
	model := fs.String("model", "", "`name` of the model")
	cores := fs.Int("cores", 1, "threads of a run")
	accelerators := fs.Int("accelerators", 0, "`number` of accelerators; with any, models run on them")
	maxBatch := fs.Int("max-batch", 0, "largest batch to measure, in `items`; 0 takes the model's own bound")
	out := fs.String("termination-log", "", "`file` to write the result to; standard output without")
	program := fs.String("sluice", "/usr/local/bin/sluice", "`program` that measures")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *models == "" || *model == "" {
		return errors.New("measure: --models and --model are needed: which model, and where is it?")
	}
	dir, err := os.MkdirTemp("", "sluice-measure-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := measuring(*models, *model, *cores, *accelerators, *maxBatch)
	text, err := file.YAML()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "sluice.yaml"), text, 0o600); err != nil {
		return err
	}
	made := filepath.Join(dir, "profile.json")
	cmd := exec.CommandContext(ctx, *program, "profile", "-f", filepath.Join(dir, "sluice.yaml"), "-o", made)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("measuring model %q: %w: %s", *model, err, strings.TrimSpace(said.String()))
	}
	measured, err := profiler.ReadFile(made)
	if err != nil {
		return err
	}
	spec, err := toProfile(measured, *model)
	if err != nil {
		return err
	}
	result, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	if *out == "" {
		_, err = fmt.Println(string(result))
		return err
	}
	return os.WriteFile(*out, result, 0o600)
}

// measuring is the configuration that a model is measured with.
func measuring(models, model string, cores, accelerators, maxBatch int) *config.File {
	f := &config.File{
		Version:     1,
		DeviceTypes: []config.DeviceType{{Name: measuredOn, Cores: max(cores, 1), Accelerators: accelerators}},
		Workers:     []config.Worker{{Name: measuredOn, Backend: config.Backend{Kind: "onnx"}}},
		Models:      config.Models{Repository: models},
		Apps: []config.App{{Name: measuredApp, SLO: config.SLO{Latency: config.Duration(measuredWithin)},
			Variants: []config.Variant{{Name: model, MaxBatch: maxBatch}}}},
	}
	if accelerators > 0 {
		f.Workers[0].Backend.Providers = []string{"cuda", "cpu"}
	}
	return f
}

// toProfile says what was measured in a Profile's words: one batch at a time.
func toProfile(f *profiler.File, model string) (*v1alpha1.ProfileSpec, error) {
	now := metav1.Now()
	out := &v1alpha1.ProfileSpec{Measured: &now, On: f.Host.CPU}
	if f.Host.Accelerator != "" {
		out.On = f.Host.Accelerator
	}
	micros := func(us float64) metav1.Duration {
		return metav1.Duration{Duration: time.Duration(math.Round(us * 1e3)).Round(time.Microsecond)}
	}
	for _, p := range f.Points {
		if p.Variant != model || p.Concurrency != 1 || p.Interpolated {
			continue
		}
		out.Latencies = append(out.Latencies, v1alpha1.Latency{
			Batch: int32(p.Batch), Mean: micros(p.Mean), P95: micros(p.P95), Deviation: micros(p.StdDev),
			Runs: int32(p.Samples),
		})
	}
	if len(out.Latencies) == 0 {
		return nil, fmt.Errorf("model %q was not measured", model)
	}
	for _, l := range f.Loads {
		if l.Variant == model {
			took := time.Duration(l.Load * float64(time.Millisecond))
			out.Load = &metav1.Duration{Duration: took.Round(time.Millisecond)}
		}
	}
	for _, m := range f.Memory {
		if m.Variant == model {
			out.MemoryBytes = m.Loaded
		}
	}
	return out, nil
}
