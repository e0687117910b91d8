package builtin

import (
	"maps"
	"sync"

	"github.com/sluice-serving/sluice/internal/tensor/ops"
	"github.com/sluice-serving/sluice/serving"
)

// Functions are the functions of variants. Several backends may share them. They are safe for concurrent use.
type Functions struct {
	mu sync.RWMutex
	of map[serving.VariantID]*ops.Function
}

// NewFunctions returns functions by variant.
func NewFunctions(of map[serving.VariantID]*ops.Function) *Functions {
	f := &Functions{of: make(map[serving.VariantID]*ops.Function, len(of))}
	maps.Copy(f.of, of)
	return f
}

// Bind sets the function of a variant before its first launch.
func (f *Functions) Bind(v serving.VariantID, to *ops.Function) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of[v] = to
}

// Unbind forgets the function of a variant.
func (f *Functions) Unbind(v serving.VariantID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of, v)
}

// get returns the function of a variant; nil for a model.
func (f *Functions) get(v serving.VariantID) *ops.Function {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.of[v]
}
