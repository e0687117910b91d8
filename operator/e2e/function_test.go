package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
)

// functions runs a command for functions, against the fleet.
func (p *place) functions(program string, args ...string) (status int, out string) {
	p.Helper()
	b, err := exec.CommandContext(p.Context(), program,
		append(args, "--fleet", "default", "--namespace", p.ns)...).CombinedOutput()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		status = failed.ExitCode()
	} else if err != nil {
		p.Fatal(err)
	}
	return status, string(b)
}

// TestFunctionOnAFleet deploys a function to a fleet that lets apps go. It has a part of a machine once it is called,
// and no machine when nobody calls. It takes minutes, so it runs in the long form of the tests only.
func TestFunctionOnAFleet(t *testing.T) {
	if os.Getenv("SLUICE_LONG") == "" {
		t.Skip("make kube-scenarios runs it")
	}
	p := install(t, 2)
	t.Setenv("KUBECONFIG", p.c.Kubeconfig)
	t.Setenv("PATH", os.Getenv("KUBEBUILDER_ASSETS")+string(os.PathListSeparator)+os.Getenv("PATH"))
	programs, err := cluster.Programs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(programs, "sluice")
	f := fleet(1)
	f.Spec.System = "infless"
	f.Spec.Options = map[string]string{"learn": "false", "keep": "keepalive", "alive": "3s"}
	f.Spec.Linger = &metav1.Duration{Duration: time.Second}
	m := machines("cpu", 2)
	m.Spec.Parts = []v1alpha1.Part{{Name: "cpu-1", Cores: 1}}
	p.create(f, m)

	uri := p.model("triple", 3)
	file := filepath.Join(t.TempDir(), "fn.yaml")
	text := "name: triple\nmodel: " + strings.TrimPrefix(uri, "file://") + "\nslo: {latency: 2s}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, out := p.functions(program, "deploy", "-f", file, "--uri", uri, "--wait", "3m"); status != 0 ||
		!strings.Contains(out, "triple: version 1 is ") {
		t.Fatalf("deploy: %d %s", status, out)
	}
	c := newCaller(p)
	c.answers("triple", 3, 6)
	if status, out := p.functions(program, "list"); status != 0 || !strings.Contains(out, "p99 2s") {
		t.Errorf("list: %d %s", status, out)
	}
	for range 2 {
		p.workers("nobody calls: the machine goes", func(n int) bool { return n == 0 })
		c.answers("triple", 3, 6)
	}
	if status, out := p.functions(program, "logs", "triple"); status != 0 || out == "" {
		t.Errorf("logs: %d %s", status, out)
	}
	if status, out := p.functions(program, "delete", "triple"); status != 0 {
		t.Errorf("delete: %d %s", status, out)
	}
	p.workers("its machine goes", func(n int) bool { return n == 0 })
	if status, out := p.functions(program, "list"); status != 0 || !strings.Contains(out, "no function") {
		t.Errorf("list: %d %s", status, out)
	}
}
