package plan

import (
	"fmt"

	"github.com/sluice-serving/sluice/serving"
)

// partsFit reports a worker whose parts take more of it than there is: of its threads, of one of its accelerators, or
// of its memory. Instances that have a whole worker are not counted.
func (p *Plan) partsFit(spec *serving.Spec) error {
	type taken struct {
		threads  int
		memory   int64
		percents []int
	}
	var workers map[serving.WorkerID]*taken
	for n := range p.Instances {
		i := &p.Instances[n]
		if i.Part == 0 {
			continue
		}
		if workers == nil {
			workers = make(map[serving.WorkerID]*taken)
		}
		has, part := &spec.DeviceTypes[spec.Workers[i.Worker].DeviceType], &spec.DeviceTypes[i.Part-1]
		x := workers[i.Worker]
		if x == nil {
			x = &taken{percents: make([]int, has.Accelerators)}
			workers[i.Worker] = x
		}
		x.threads += part.Cores
		x.memory += part.MemoryBytes
		bad := func(format string, args ...any) error {
			return fmt.Errorf("plan of %s, instance %d: %w", p.Planner, n, fmt.Errorf(format, args...))
		}
		if x.threads > has.Cores {
			return bad("parts take %d threads of worker %q, which has %d", x.threads, spec.Workers[i.Worker].Name,
				has.Cores)
		}
		if has.MemoryBytes > 0 && x.memory > has.MemoryBytes {
			return bad("parts take %d bytes of worker %q, which has %d", x.memory, spec.Workers[i.Worker].Name,
				has.MemoryBytes)
		}
		if part.Percent == 0 {
			continue
		}
		if int(i.Accelerator) >= len(x.percents) {
			return bad("a part takes %d per cent of an accelerator of worker %q, which has none", part.Percent,
				spec.Workers[i.Worker].Name)
		}
		if x.percents[i.Accelerator] += part.Percent; x.percents[i.Accelerator] > 100 {
			return bad("parts take %d per cent of accelerator %d of worker %q", x.percents[i.Accelerator],
				i.Accelerator, spec.Workers[i.Worker].Name)
		}
	}
	return nil
}
