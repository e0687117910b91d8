package highs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// guest is the state of a module instance that the functions it imports work on.
type guest struct {
	clock  uint64 // ns; advances by tick per reading, so that no result depends on the machine's speed
	denied bool   // a request for memory was denied
	log    []byte // the end of the solver's output
}

type guestKey struct{}

const (
	tick    = 1000 // ns
	logTail = 4096
	badFile = 8  // EBADF of WASI
	noCall  = 52 // ENOSYS of WASI
)

var (
	errAborted = errors.New("highs: the solver aborted")
	errExited  = errors.New("highs: the solver ended itself")
)

type hostFunc func(g *guest, m api.Module, stack []uint64)

// host is the functions that the module may import: memory, a clock and a log. All others return that they do not
// exist.
var host = map[string]hostFunc{
	"abort_js":                           func(*guest, api.Module, []uint64) { panic(errAborted) },
	"cxa_throw":                          func(*guest, api.Module, []uint64) { panic(errAborted) },
	"exit":                               func(*guest, api.Module, []uint64) { panic(errExited) },
	"proc_exit":                          func(*guest, api.Module, []uint64) { panic(errExited) },
	"emscripten_runtime_keepalive_clear": func(*guest, api.Module, []uint64) {},
	"setitimer_js":                       func(_ *guest, _ api.Module, s []uint64) { s[0] = 0 },
	"emscripten_get_now": func(g *guest, _ api.Module, s []uint64) {
		s[0] = api.EncodeF64(float64(g.time()) / 1e6)
	},
	"emscripten_date_now": func(g *guest, _ api.Module, s []uint64) {
		s[0] = api.EncodeF64(float64(g.time()) / 1e6)
	},
	"clock_time_get": func(g *guest, m api.Module, s []uint64) {
		put64(m, uint32(s[2]), g.time())
		s[0] = 0
	},
	"tzset_js": func(_ *guest, m api.Module, s []uint64) {
		put32(m, uint32(s[0]), 0)
		put32(m, uint32(s[1]), 0)
	},
	"environ_sizes_get": func(_ *guest, m api.Module, s []uint64) {
		put32(m, uint32(s[0]), 0)
		put32(m, uint32(s[1]), 0)
		s[0] = 0
	},
	"environ_get":     func(_ *guest, _ api.Module, s []uint64) { s[0] = 0 },
	"fd_close":        func(_ *guest, _ api.Module, s []uint64) { s[0] = badFile },
	"fd_read":         func(_ *guest, _ api.Module, s []uint64) { s[0] = badFile },
	"fd_seek":         func(_ *guest, _ api.Module, s []uint64) { s[0] = badFile },
	"syscall_fcntl64": func(_ *guest, _ api.Module, s []uint64) { s[0] = minus(noCall) },
	"syscall_ioctl":   func(_ *guest, _ api.Module, s []uint64) { s[0] = minus(noCall) },
	"syscall_openat":  func(_ *guest, _ api.Module, s []uint64) { s[0] = minus(noCall) },
	"fd_write":        write,
	"emscripten_resize_heap": func(g *guest, m api.Module, s []uint64) {
		const page = 1 << 16
		want, have := uint64(uint32(s[0])), uint64(m.Memory().Size())
		s[0] = 1
		if want <= have {
			return
		}
		if _, ok := m.Memory().Grow(uint32((want - have + page - 1) / page)); !ok {
			g.denied = true
			s[0] = 0
		}
	},
}

func (g *guest) time() uint64 {
	g.clock += tick
	return g.clock
}

func minus(n int32) uint64 { return uint64(uint32(-n)) }

func put32(m api.Module, at, v uint32) { m.Memory().WriteUint32Le(at, v) }

func put64(m api.Module, at uint32, v uint64) { m.Memory().WriteUint64Le(at, v) }

// write keeps the end of the solver's output, for errors.
func write(g *guest, m api.Module, s []uint64) {
	at, n := uint32(s[1]), uint32(s[2])
	total := uint32(0)
	for range n {
		v, ok := m.Memory().Read(at, 8)
		if !ok {
			s[0] = badFile
			return
		}
		text, ok := m.Memory().Read(binary.LittleEndian.Uint32(v), binary.LittleEndian.Uint32(v[4:]))
		if !ok {
			s[0] = badFile
			return
		}
		g.log = append(g.log, text...)
		if len(g.log) > 2*logTail {
			g.log = append(g.log[:0], g.log[len(g.log)-logTail:]...)
		}
		total += uint32(len(text))
		at += 8
	}
	put32(m, uint32(s[3]), total)
	s[0] = 0
}

// instantiateHost provides the functions with the names and types of the module's imports.
func instantiateHost(ctx context.Context, r wazero.Runtime, module wazero.CompiledModule) error {
	b := r.NewHostModuleBuilder("a")
	types := make(map[string]api.FunctionDefinition)
	for _, d := range module.ImportedFunctions() {
		_, name, _ := d.Import()
		types[name] = d
	}
	for _, i := range imports {
		d, ok := types[i[0]]
		if !ok {
			continue
		}
		f := host[i[1]]
		if f == nil {
			return fmt.Errorf("highs: version %s imports %q, which is not offered: add it to host.go", Version, i[1])
		}
		delete(types, i[0])
		b.NewFunctionBuilder().WithGoModuleFunction(
			api.GoModuleFunc(func(ctx context.Context, m api.Module, stack []uint64) {
				g, _ := ctx.Value(guestKey{}).(*guest)
				f(g, m, stack)
			}), d.ParamTypes(), d.ResultTypes()).Export(i[0])
	}
	for name := range types {
		return fmt.Errorf("highs: the module imports %q and highs.js does not say what that is: run go generate", name)
	}
	_, err := b.Instantiate(ctx)
	return err
}
