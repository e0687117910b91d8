package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/operator/internal/cluster"
)

// TestThePage runs the commands of docs/kubernetes-packaging.md, in their order and as they stand there, in a copy of
// what they name. A command that fails is an error of the page.
func TestThePage(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Controllers: true, Empty: true,
		Nodes: []cluster.Nodes{{Name: "n", Count: 2}}})
	root, work, bin := cluster.Root(), t.TempDir(), t.TempDir()
	for _, name := range []string{"operator", "examples", "internal"} {
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(work, name)); err != nil {
			t.Fatal(err)
		}
	}
	build := func(dir, name, pkg string) {
		cmd := exec.Command("go", "build", "-o", filepath.Join(bin, name), pkg)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	build(root, "sluice", "./cmd/sluice")
	build(".", "helm", "helm.sh/helm/v3/cmd/helm")
	tools, err := cluster.Tools()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "kubernetes-packaging.md"))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "```sh\n")
	if len(parts) < 5 {
		t.Fatalf("the page has %d commands", len(parts)-1)
	}
	for _, part := range parts[1:] {
		script, _, _ := strings.Cut(part, "```")
		cmd := exec.Command("bash", "-eu", "-c", script)
		cmd.Dir = work
		cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "HOME="+work,
			"PATH="+bin+":"+tools+":"+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
	}
	out, err := c.Kubectl(t.Context(), "", "get", "inferenceapps", "-n", "models", "-o", "name")
	if err != nil || !strings.Contains(out, "inferenceapp.sluice.dev/images") {
		t.Errorf("after the page there is %q, %v", out, err)
	}
}
