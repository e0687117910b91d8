package profiler

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/runtime/device"
	"github.com/sluice-serving/sluice/serving"
)

// maxBytes bounds memory in profiles.
const maxBytes = 1 << 50

// Memory is what one variant takes of the memory of one device type, in bytes.
type Memory struct {
	Variant    string `json:"variant"`
	DeviceType string `json:"device_type"`
	Loaded     int64  `json:"loaded_bytes"`             // once it is loaded and has run one item
	Batch      int    `json:"batch,omitempty"`          // largest batch that it was loaded and run with
	AtBatch    int64  `json:"at_batch_bytes,omitempty"` // taken by it then
	// Most is the largest batch that there was memory for; 0 where none lacked it.
	Most int `json:"most_batch,omitempty"`
}

// Spares are processes that wait to be given a model.
type Spares interface {
	// Settle waits until all wait that are to.
	Settle(context.Context) error
	// SpareMemory returns how many bytes those that wait take.
	SpareMemory() int64
}

// SpareMemory is what spare processes take of the memory of one machine of a device type, in bytes.
type SpareMemory struct {
	DeviceType string `json:"device_type"`
	Bytes      int64  `json:"bytes"`
}

func validSpares(list []SpareMemory) error {
	seen := make(map[string]bool)
	for i, m := range list {
		switch {
		case m.DeviceType == "":
			return fmt.Errorf("spares[%d].device_type is empty", i)
		case m.Bytes < 1 || m.Bytes > maxBytes:
			return fmt.Errorf("spares[%d].bytes is %d, want 1 to %d", i, m.Bytes, int64(maxBytes))
		case seen[m.DeviceType]:
			return fmt.Errorf("spares[%d] is of %q, as one before", i, m.DeviceType)
		}
		seen[m.DeviceType] = true
	}
	return nil
}

// AcceleratorSeen is how an accelerator was while points of a device type were measured on it.
type AcceleratorSeen struct {
	DeviceType string `json:"device_type"`
	device.Seen
}

func validMemory(list []Memory) error {
	seen := make(map[[2]string]bool)
	for i, m := range list {
		key := [2]string{m.Variant, m.DeviceType}
		switch {
		case m.Variant == "":
			return fmt.Errorf("memory[%d].variant is empty", i)
		case m.DeviceType == "":
			return fmt.Errorf("memory[%d].device_type is empty", i)
		case m.Loaded < 0 || m.Loaded > maxBytes:
			return fmt.Errorf("memory[%d].loaded_bytes is %d, want 0 to %d", i, m.Loaded, int64(maxBytes))
		case m.AtBatch < 0 || m.AtBatch > maxBytes:
			return fmt.Errorf("memory[%d].at_batch_bytes is %d, want 0 to %d", i, m.AtBatch, int64(maxBytes))
		case m.Batch < 0 || m.Batch > maxBatch:
			return fmt.Errorf("memory[%d].batch is %d, want 0 to %d", i, m.Batch, maxBatch)
		case m.Most < 0 || m.Most > maxBatch:
			return fmt.Errorf("memory[%d].most_batch is %d, want 0 to %d", i, m.Most, maxBatch)
		case seen[key]:
			return fmt.Errorf("memory[%d] measures %q on %q a second time", i, m.Variant, m.DeviceType)
		}
		seen[key] = true
	}
	return nil
}

func validAccelerators(list []AcceleratorSeen) error {
	for i, a := range list {
		if a.DeviceType == "" {
			return fmt.Errorf("accelerators[%d].device_type is empty", i)
		}
	}
	return nil
}

// MemoryOf returns what a variant takes once it is loaded, and for each item of a batch beyond that, in bytes: the most
// of all device types; 0 where it was not measured.
func (f *File) MemoryOf(variant string) (loaded, item int64) {
	for _, m := range f.Memory {
		if m.Variant != variant {
			continue
		}
		loaded = max(loaded, m.Loaded)
		if m.Batch > 0 {
			item = max(item, (m.AtBatch-m.Loaded+int64(m.Batch)-1)/int64(m.Batch))
		}
	}
	return loaded, item
}

// mergeMemory takes over another profile's memory, spare processes and accelerators. Where both have the same, the
// other's counts.
func (f *File) mergeMemory(other *File) {
	for _, m := range other.Memory {
		f.setMemory(m)
	}
	for _, x := range other.Spares {
		f.Spares = put(f.Spares, x, func(y SpareMemory) bool { return x.DeviceType == y.DeviceType })
	}
	for _, a := range other.Accelerators {
		f.Accelerators = put(f.Accelerators, a, func(b AcceleratorSeen) bool {
			return a.DeviceType == b.DeviceType && a.UUID == b.UUID
		})
	}
}

func (f *File) setMemory(m Memory) {
	f.Memory = put(f.Memory, m, func(x Memory) bool { return x.Variant == m.Variant && x.DeviceType == m.DeviceType })
}

// used returns the memory that is in use on the device, in bytes; false where nobody can tell.
func (p *profiler) used(ctx context.Context) (int64, bool) {
	if p.cfg.Memory == nil {
		return 0, false
	}
	return p.cfg.Memory(ctx)
}

// bringWithin launches a variant with a batch limit, or with the largest half of a half of it that there is memory for.
// It returns the limit, and what of the device's memory the variant took; 0 where nobody can tell.
func (p *profiler) bringWithin(ctx context.Context, s *profiledVariant, limit int) (
	r dataplane.Runner, fits int, took int64, err error) {
	for ; ; limit /= 2 {
		before, known := p.used(ctx)
		r, err := p.cfg.Backend.Launch(ctx, dataplane.InstanceSpec{
			ID: serving.InstanceID(s.v) + 1, Worker: p.cfg.Worker, DeviceType: p.cfg.DeviceType,
			Variants:   []serving.VariantID{s.v},
			BatchLimit: limit, Slots: p.cfg.Slots, Cores: p.cfg.Cores, Cold: p.cold,
		})
		if err != nil && errors.Is(err, dataplane.ErrOutOfMemory) && limit > 1 {
			s.lacksMemory(limit)
			continue
		}
		if err != nil {
			return nil, 0, 0, err
		}
		if after, ok := p.used(ctx); ok && known {
			took = max(after-before, 0)
		} else if own, ok := r.(dataplane.Footprint); ok && p.cfg.Memory == nil {
			if bytes, known := own.Footprint(); known {
				took = bytes
			}
		}
		return r, limit, took, nil
	}
}

// lacksMemory notes that the device lacks memory for batches of so many items: the next smaller ones are the most.
func (s *profiledVariant) lacksMemory(items int) {
	most := 1
	for _, q := range s.points {
		if q.batch < items {
			most = max(most, q.batch)
		}
	}
	if s.memory.Most == 0 || most < s.memory.Most {
		s.memory.Most = most
	}
}

// dropTooLarge skips the points that need more memory than q, for which it was lacking. It returns false where even one
// item alone lacks it.
func (p *profiler) dropTooLarge(q *point) bool {
	if q.batch > 1 {
		q.subject.lacksMemory(q.batch)
	} else if q.concurrency == 1 {
		return false
	}
	for _, o := range q.subject.points {
		if o.done || o.batch < q.batch || q.batch == 1 && o.concurrency < q.concurrency {
			continue
		}
		p.end(o, ": skipped, too large for the memory")
	}
	return true
}
