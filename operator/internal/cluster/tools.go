package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// assetsVariable names the folder of the programs; controller-runtime's envtest reads it, too.
const assetsVariable = "KUBEBUILDER_ASSETS"

// mustVariable says by the value "must" that tests fail where the programs are missing. Elsewhere they are skipped.
const mustVariable = "SLUICE_CLUSTER"

// Tools returns the folder that holds kube-apiserver, etcd and the other programs: that of KUBEBUILDER_ASSETS, or the
// one built last in the repository's .tools.
func Tools() (string, error) {
	if dir := os.Getenv(assetsVariable); dir != "" {
		if _, err := os.Stat(filepath.Join(dir, "kube-apiserver")); err != nil {
			return "", fmt.Errorf("%s is %q, which holds no kube-apiserver: %w", assetsVariable, dir, err)
		}
		return dir, nil
	}
	built, err := filepath.Glob(filepath.Join(Root(), ".tools", "kube-*", "complete"))
	if err != nil {
		return "", err
	}
	var newest string
	var at int64
	for _, mark := range built {
		if st, err := os.Stat(mark); err == nil && st.ModTime().UnixNano() > at {
			newest, at = filepath.Dir(mark), st.ModTime().UnixNano()
		}
	}
	if newest == "" {
		return "", fmt.Errorf("no control plane is built in %s: run `make kube-tools` (ten minutes, once)",
			filepath.Join(Root(), ".tools"))
	}
	return newest, nil
}

// Root is the folder of the repository.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..")
}

// Need skips the test where no control plane is built, or fails it where SLUICE_CLUSTER=must asks for one.
func Need(t testing.TB) {
	t.Helper()
	if _, err := Tools(); err != nil {
		missing(t, err)
	}
}

func missing(t testing.TB, err error) {
	t.Helper()
	if os.Getenv(mustVariable) == "must" {
		t.Fatal(err)
	}
	t.Skip(err)
}
