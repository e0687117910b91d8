package dispatcher_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sluice-serving/sluice/operator/internal/cluster"
)

// built is the path of the program, once it is built.
var built string

// binary is the built program that the tests run: that of SLUICE_OPERATOR, or one that is built for them.
var binary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("SLUICE_OPERATOR"); path != "" {
		return path, nil
	}
	dir, err := os.MkdirTemp("", "sluice-operator-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "sluice-operator")
	build := exec.Command("go", "build", "-o", path, "./cmd/sluice-operator")
	build.Dir = filepath.Join(cluster.Root(), "operator")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the program: %w\n%s", err, out)
	}
	built = path
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(filepath.Dir(built))
	}
	os.Exit(code)
}
