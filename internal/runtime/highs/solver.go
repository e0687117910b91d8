package highs

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	_ "embed" // the module
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/tetratelabs/wazero"
)

//go:embed highs.wasm.gz
var compressed []byte

// Options of a Solver.
type Options struct {
	// CacheDir keeps the compiled module between runs of the program; "" compiles at every start (one to three
	// seconds).
	CacheDir string
	// Memory in bytes that one solve may take at most; 0 means 1 GiB.
	Memory int64
	// Keep is the number of module instances kept for the next solves; 0 means one per core.
	Keep int
}

// DefaultCacheDir is where the compiled module is kept for this user, or "" when there is no such place.
func DefaultCacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	dir = filepath.Join(dir, "sluice", "highs-"+Version)
	if os.MkdirAll(dir, 0o700) != nil {
		return ""
	}
	probe, err := os.CreateTemp(dir, "probe")
	if err != nil {
		return ""
	}
	_ = probe.Close()
	_ = os.Remove(probe.Name())
	return dir
}

const (
	page          = 1 << 16
	defaultMemory = 1 << 30
	// keepBelow is the memory up to which an instance is kept: WebAssembly memory never shrinks.
	keepBelow = 256 << 20
)

// Solver runs HiGHS. Every solve has a module instance to itself, so that solves run concurrently and a crash of one
// does not affect the others. It is safe for concurrent use.
type Solver struct {
	runtime  wazero.Runtime
	cache    wazero.CompilationCache
	compiled wazero.CompiledModule
	config   wazero.ModuleConfig

	mu   sync.Mutex
	idle []*module
	keep int
	done bool
}

var _ milp.Solver = (*Solver)(nil)

// New compiles HiGHS, or takes it from the cache, and returns a solver.
func New(o Options) (*Solver, error) {
	if o.Memory <= 0 {
		o.Memory = defaultMemory
	}
	if o.Keep <= 0 {
		o.Keep = runtime.GOMAXPROCS(0)
	}
	z, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, fmt.Errorf("highs: the embedded module: %w", err)
	}
	wasm, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("highs: the embedded module: %w", err)
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256(wasm)); sum != checksum {
		return nil, fmt.Errorf("highs: the embedded module has checksum %s, version %s has %s: run go generate", sum,
			Version, checksum)
	}
	ctx := context.Background()
	s := &Solver{keep: o.Keep, config: wazero.NewModuleConfig().WithName("").WithStartFunctions()}
	c := wazero.NewRuntimeConfig().WithCloseOnContextDone(true).WithMemoryLimitPages(
		uint32(min(o.Memory, 1<<32-page) / page))
	if o.CacheDir != "" {
		if s.cache, err = wazero.NewCompilationCacheWithDir(o.CacheDir); err == nil {
			c = c.WithCompilationCache(s.cache)
		} // without a cache folder only the start is slower
	}
	s.runtime = wazero.NewRuntimeWithConfig(ctx, c)
	if s.compiled, err = s.runtime.CompileModule(ctx, wasm); err == nil {
		err = instantiateHost(ctx, s.runtime, s.compiled)
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// Close releases everything. Solves in progress fail.
func (s *Solver) Close() error {
	s.mu.Lock()
	s.done, s.idle = true, nil
	s.mu.Unlock()
	err := s.runtime.Close(context.Background())
	if s.cache != nil {
		_ = s.cache.Close(context.Background())
	}
	return err
}

func (s *Solver) take(ctx context.Context) (*module, error) {
	s.mu.Lock()
	if n := len(s.idle); n > 0 {
		x := s.idle[n-1]
		s.idle = s.idle[:n-1]
		s.mu.Unlock()
		return x, nil
	}
	s.mu.Unlock()
	return s.instantiate(ctx)
}

// putBack keeps an instance for the next solve, unless the solve failed or its memory has grown large.
func (s *Solver) putBack(x *module, err error) {
	if err == nil && x.m.Memory().Size() <= keepBelow {
		s.mu.Lock()
		if !s.done && len(s.idle) < s.keep {
			s.idle = append(s.idle, x)
			x = nil
		}
		s.mu.Unlock()
	}
	if x != nil {
		x.close()
	}
}
