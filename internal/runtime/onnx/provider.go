//go:build cgo

package onnx

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/runtime/device"
	"github.com/sluice-serving/sluice/serving"
)

// cudaFailure is how ONNX Runtime reports an error of CUDA after which a process cannot use the accelerator any more.
var cudaFailure = regexp.MustCompile(`CUDA (failure|error)`)

// choice is the provider that a worker's instances use, and why not those before it.
type choice struct {
	name   string
	passed error // joined; nil where the first is used
	err    error // no provider can be used
}

// Provider returns the execution provider that a worker's instances use: the first of its device that the library has
// and that starts. passed says why those before it cannot be used; nil where the first can. The first call for a worker
// tries them; it fails where none can be used.
func (b *Backend) Provider(w serving.WorkerID) (name string, passed, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, ok := b.chosen[w]
	if !ok {
		c = b.choose(w)
		if b.chosen == nil {
			b.chosen = make(map[serving.WorkerID]choice)
		}
		b.chosen[w] = c
	}
	return c.name, c.passed, c.err
}

func (b *Backend) device(w serving.WorkerID) Device {
	d := Device{}
	if b.cfg.Device != nil {
		d = b.cfg.Device(w)
	}
	if len(d.Providers) == 0 {
		d.Providers = []string{CPU}
	}
	return d
}

func (b *Backend) choose(w serving.WorkerID) (c choice) {
	d := b.device(w)
	var passed []error
	for _, name := range d.Providers {
		err := try(name, d, dataplane.InstanceSpec{Worker: w})
		if err == nil {
			return choice{name: name, passed: errors.Join(passed...)}
		}
		passed = append(passed, err)
	}
	return choice{err: fmt.Errorf("onnx: %w", errors.Join(passed...))}
}

// try makes a session's options with a provider and drops them.
func try(name string, d Device, spec dataplane.InstanceSpec) error {
	o, err := ort.NewSessionOptions()
	if err != nil {
		return err
	}
	return errors.Join(appendProvider(o, name, d, spec), o.Destroy())
}

// appendProvider has a session run on a provider. What that cannot run, the processor does.
func appendProvider(o *ort.SessionOptions, name string, d Device, spec dataplane.InstanceSpec) error {
	switch name {
	case CPU:
		return nil
	case CUDA:
	default:
		return fmt.Errorf("provider is %q, want %s or %s", name, CUDA, CPU)
	}
	missing := func(err error) error {
		return fmt.Errorf(
			"provider cuda: %w; it needs an ONNX Runtime library built with CUDA (set SLUICE_ONNXRUNTIME to it), "+
				"libonnxruntime_providers_cuda beside it, and the CUDA and cuDNN libraries on the loader's path", err)
	}
	ordinal := 0
	if d.Ordinal != nil {
		ordinal = d.Ordinal(spec)
	}
	if ordinal < 0 {
		return errors.New("provider cuda: this process may use no accelerator; `sluice devices` says why")
	}
	c, err := ort.NewCUDAProviderOptions()
	if err != nil {
		return missing(err)
	}
	defer func() { _ = c.Destroy() }()
	options := maps.Clone(d.Options)
	if options == nil {
		options = make(map[string]string)
	}
	options["device_id"] = strconv.Itoa(ordinal)
	for _, key := range slices.Sorted(maps.Keys(options)) {
		if err := c.Update(map[string]string{key: options[key]}); err != nil {
			return missing(fmt.Errorf("provider option %s=%s: %w", key, options[key], err))
		}
	}
	if err := o.AppendExecutionProviderCUDA(c); err != nil {
		return missing(err)
	}
	return nil
}

// classified wraps what an error of a run means for the data plane: too large a batch, or a lost accelerator.
func classified(err error, provider string) error {
	switch {
	case err == nil || errors.Is(err, dataplane.ErrOutOfMemory):
		return err
	case device.SaysOutOfMemory(err.Error()):
		return fmt.Errorf("%w: %w", dataplane.ErrOutOfMemory, err)
	case provider == CUDA && cudaFailure.MatchString(err.Error()):
		return fmt.Errorf("%w: %w", dataplane.ErrInstanceLost, err)
	}
	return err
}
