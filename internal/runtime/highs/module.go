package highs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/tetratelabs/wazero/api"
)

// module is one running copy of HiGHS with a memory of its own.
type module struct {
	guest guest
	m     api.Module
	funcs map[string]api.Function
	owned []uint32 // memory that the present solve has allocated
}

func (s *Solver) instantiate(ctx context.Context) (*module, error) {
	x := &module{funcs: make(map[string]api.Function)}
	m, err := s.runtime.InstantiateModule(context.WithValue(ctx, guestKey{}, &x.guest), s.compiled, s.config)
	if err != nil {
		return nil, fmt.Errorf("highs: %w", err)
	}
	x.m = m
	if _, err := x.call(ctx, exportStart); err != nil {
		return nil, errors.Join(err, m.Close(context.WithoutCancel(ctx)))
	}
	return x, nil
}

func (x *module) close() { _ = x.m.Close(context.Background()) }

// call calls an export; its first result, if any, is returned.
func (x *module) call(ctx context.Context, name string, args ...uint64) (result uint64, err error) {
	f := x.funcs[name]
	if f == nil {
		if f = x.m.ExportedFunction(name); f == nil {
			return 0, fmt.Errorf("highs: the module has no export %q: run go generate", name)
		}
		x.funcs[name] = f
	}
	out, err := f.Call(context.WithValue(ctx, guestKey{}, &x.guest), args...)
	switch {
	case err == nil:
		if len(out) > 0 {
			result = out[0]
		}
		return result, nil
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case x.guest.denied:
		return 0, fmt.Errorf("highs: %d MiB: %w", x.m.Memory().Size()>>20, milp.ErrMemory)
	}
	text := err.Error()
	if line, _, ok := strings.Cut(text, "\n"); ok {
		text = line // the other lines are a trace through machine code
	}
	return 0, fmt.Errorf("highs: %s; it said last: %q", text, x.lastLog())
}

// lastLog returns the end of the solver's log.
func (x *module) lastLog() string {
	t := strings.TrimSpace(string(x.guest.log))
	if len(t) > 200 {
		t = t[len(t)-200:]
	}
	return t
}

// alloc allocates n bytes of the module's memory, until release.
func (x *module) alloc(ctx context.Context, n int) (uint32, error) {
	p, err := x.call(ctx, exportMalloc, uint64(max(n, 8)))
	if err != nil {
		return 0, err
	}
	if uint32(p) == 0 {
		return 0, fmt.Errorf("highs: %d bytes: %w", n, milp.ErrMemory)
	}
	x.owned = append(x.owned, uint32(p))
	return uint32(p), nil
}

func (x *module) release(ctx context.Context) error {
	for _, p := range x.owned {
		if _, err := x.call(ctx, exportFree, uint64(p)); err != nil {
			return err
		}
	}
	x.owned = x.owned[:0]
	return nil
}

// bytes copies b into the module.
func (x *module) bytes(ctx context.Context, b []byte) (uint64, error) {
	p, err := x.alloc(ctx, len(b))
	if err == nil && !x.m.Memory().Write(p, b) {
		err = errors.New("highs: a write beyond the module's memory")
	}
	return uint64(p), err
}

func (x *module) text(ctx context.Context, s string) (uint64, error) {
	return x.bytes(ctx, append([]byte(s), 0))
}

func (x *module) floats(ctx context.Context, v []float64) (uint64, error) {
	b := make([]byte, 0, 8*len(v))
	for _, f := range v {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(f))
	}
	return x.bytes(ctx, b)
}

func (x *module) ints(ctx context.Context, v []int32) (uint64, error) {
	b := make([]byte, 0, 4*len(v))
	for _, i := range v {
		b = binary.LittleEndian.AppendUint32(b, uint32(i))
	}
	return x.bytes(ctx, b)
}

// readFloats copies n numbers out of the module.
func (x *module) readFloats(p uint64, n int) ([]float64, error) {
	b, ok := x.m.Memory().Read(uint32(p), uint32(8*n))
	if !ok {
		return nil, errors.New("highs: a read beyond the module's memory")
	}
	out := make([]float64, n)
	for i := range out {
		out[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return out, nil
}
