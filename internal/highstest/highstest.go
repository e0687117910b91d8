// Package highstest has the solver that tests share.
package highstest

import (
	"sync"
	"testing"

	"github.com/sluice-serving/sluice/internal/runtime/highs"
)

var shared = sync.OnceValues(func() (*highs.Solver, error) {
	return highs.New(highs.Options{CacheDir: highs.DefaultCacheDir()})
})

// Solver returns a solver that all tests of a package share, so that it is compiled once. It is not to be closed.
func Solver(t testing.TB) *highs.Solver {
	t.Helper()
	s, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return s
}
