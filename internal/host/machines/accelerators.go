package machines

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/internal/runtime/device"
	"github.com/sluice-serving/sluice/internal/runtime/onnx"
	"github.com/sluice-serving/sluice/serving"
)

// lookEvery is how often an accelerator is looked at while models are measured on it.
const lookEvery = 2 * time.Second

// accelerators are those of this machine that workers have. Nil is for workers without any.
type accelerators struct {
	machine device.Machine
	pool    *device.Pool
	why     error // no worker has one; nil where those that are to have one do
}

// wants reports whether a worker uses accelerators of this machine if they are there: by ONNX Runtime's provider, or in
// processes of its own that find them by themselves.
func (f *Fleet) wants(w serving.WorkerID) bool {
	if !f.RunsHere(w) || f.Tables.Spec.DeviceTypes[f.Tables.Spec.Workers[w].DeviceType].Accelerators == 0 {
		return false
	}
	p := f.Tables.Backends[w].Providers
	return len(p) == 0 || slices.Contains(p, onnx.CUDA)
}

// needs reports whether a worker runs nothing without an accelerator.
func (f *Fleet) needs(w serving.WorkerID) bool {
	p := f.Tables.Backends[w].Providers
	return slices.Contains(p, onnx.CUDA) && !slices.Contains(p, onnx.CPU)
}

// accelerators looks for the accelerators that workers are to have. Where there are too few it fails if a worker runs
// nothing without one; else none has any, and why says so.
func (f *Fleet) accelerators(ctx context.Context) (*accelerators, error) {
	spec := f.Tables.Spec
	wanted := make([]device.Wanted, len(spec.Workers))
	any, needed := false, false
	for at := range wanted {
		w := serving.WorkerID(at)
		wanted[at] = device.Wanted{Name: spec.Workers[at].Name, IDs: []string{}}
		if at >= len(f.Tables.Backends) || !f.wants(w) {
			continue
		}
		any = true
		wanted[at].Count = spec.DeviceTypes[spec.Workers[at].DeviceType].Accelerators
		wanted[at].IDs = f.Tables.Accelerators[at]
		needed = needed || f.needs(w)
	}
	if !any {
		return nil, nil
	}
	a := &accelerators{machine: device.Read(ctx, device.Tool{})}
	pool, err := device.NewPool(device.Visible(os.Getenv, &a.machine), wanted)
	if err != nil {
		if a.machine.Note != "" {
			err = fmt.Errorf("%w (%s)", err, a.machine.Note)
		}
		if needed {
			return nil, fault.Wrap(fault.Config, err)
		}
		a.why = err
		return a, nil
	}
	a.pool = pool
	return a, nil
}

// share is what an instance has; nothing where there is no accelerator.
func (a *accelerators) share(spec dataplane.InstanceSpec) device.Share {
	if a == nil || a.pool == nil {
		return device.Share{Ordinal: -1}
	}
	return a.pool.Of(int(spec.Worker), spec.Accelerator, spec.Percent, int(spec.ID))
}

// environment is what processes of an instance have in their environment, so that they use what the instance has. On a
// machine without accelerators it hides none that a process might find.
func (a *accelerators) environment(spec dataplane.InstanceSpec) map[string]string {
	if a == nil {
		return nil
	}
	return a.share(spec).Environment()
}

// onnxDevice returns where ONNX Runtime runs the instances of a worker.
func (f *Fleet) onnxDevice(a *accelerators) func(serving.WorkerID) onnx.Device {
	return func(w serving.WorkerID) onnx.Device {
		b := f.Tables.Backends[w]
		return onnx.Device{
			Providers: b.Providers, Options: b.ProviderOptions, Pin: b.PinCores,
			Ordinal: func(spec dataplane.InstanceSpec) int { return a.share(spec).Ordinal },
		}
	}
}

// checkProviders tries the providers of the workers that run models by ONNX Runtime. It tells of those that fall back.
func (f *Fleet) checkProviders(b *onnx.Backend, tell func(error)) error {
	for w := range f.Tables.Backends {
		if f.Tables.Backends[w].Kind != kindONNX || len(f.Tables.Backends[w].Providers) == 0 {
			continue
		}
		used, passed, err := b.Provider(serving.WorkerID(w))
		name := f.Tables.Spec.Workers[w].Name
		if err != nil {
			return fault.Errorf(fault.Missing, "worker %q: %w", name, err)
		}
		if passed != nil && tell != nil {
			tell(fmt.Errorf("worker %q runs its models by provider %s: %w", name, used, passed))
		}
	}
	return nil
}

// onAccelerator reports whether the models of a worker run on the accelerator that it has, as far as is known here:
// ONNX Runtime says so, and processes of their own use what they see.
func (b *Backends) onAccelerator(w serving.WorkerID) bool {
	if b.has == nil || b.has.pool == nil || !b.Fleet.wants(w) {
		return false
	}
	if b.Fleet.Tables.Backends[w].Kind != kindONNX || b.Local == nil {
		return true
	}
	used, _, err := b.Local.Provider(w)
	return err == nil && used == onnx.CUDA
}

// WorkerDevice is what runs the models of a worker.
type WorkerDevice struct {
	Worker       string   `json:"worker"`
	DeviceType   string   `json:"device_type"`
	Backend      string   `json:"backend"`
	Accelerators []string `json:"accelerators,omitempty"` // as CUDA_VISIBLE_DEVICES names them
	Provider     string   `json:"provider,omitempty"`     // of ONNX Runtime, in use
	PassedOver   string   `json:"passed_over,omitempty"`  // why the preferred providers are not
}

// Devices says which accelerators of this machine the workers have, and which provider runs their models. It loads the
// runtime, and no models.
func (f *Fleet) Devices(ctx context.Context) ([]WorkerDevice, error) {
	a, err := f.accelerators(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]WorkerDevice, len(f.Tables.Backends))
	for w := range out {
		worker := &f.Tables.Spec.Workers[w]
		d := &f.Tables.Spec.DeviceTypes[worker.DeviceType]
		out[w] = WorkerDevice{Worker: worker.Name, DeviceType: d.Name, Backend: f.Tables.Backends[w].Kind}
		for at := range d.Accelerators {
			s := a.share(dataplane.InstanceSpec{Worker: serving.WorkerID(w), Accelerator: at, Percent: 100})
			if s.ID != "" && f.wants(serving.WorkerID(w)) {
				out[w].Accelerators = append(out[w].Accelerators, s.ID)
			}
		}
		if len(f.Tables.Backends[w].Providers) == 0 {
			continue
		}
		b, err := f.ONNXBackend(ctx)
		if err != nil {
			return nil, err
		}
		used, passed, err := b.Provider(serving.WorkerID(w))
		if err != nil {
			return nil, fault.Errorf(fault.Missing, "worker %q: %w", worker.Name, err)
		}
		if out[w].Provider = used; passed != nil {
			out[w].PassedOver = passed.Error()
		}
	}
	return out, nil
}

// measured has a profiler look at the memory of the accelerator that a site has. It returns a function to call at the
// end, which adds what was seen of it to the profile.
func (a *accelerators) measured(ctx context.Context, c *profiler.Config) (end func(*profiler.File)) {
	if a == nil || a.pool == nil {
		return func(*profiler.File) {}
	}
	id := a.pool.Of(int(c.Worker), 0, 100, 0).ID
	if id == "" {
		return func(*profiler.File) {}
	}
	c.Memory = func(ctx context.Context) (int64, bool) {
		m := device.Read(ctx, device.Tool{})
		x, ok := m.Of(id)
		if !ok {
			return 0, false
		}
		return x.State.MemoryUsedBytes, true
	}
	if x, ok := a.machine.Of(id); ok {
		c.Host.Accelerator = fmt.Sprintf("%s, driver %s", x.Name, x.Driver)
	}
	stop := device.Watch(ctx, device.Tool{}, id, lookEvery)
	return func(f *profiler.File) {
		if s := stop(); f != nil && s.Samples > 0 {
			f.Accelerators = append(f.Accelerators, profiler.AcceleratorSeen{DeviceType: f.DeviceType, Seen: s})
		}
	}
}
