package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/sluice-serving/sluice/operator/internal/cluster/kubelet"
)

// Kubelet runs pods as processes of this machine, on nodes of its own; see package kubelet. The control plane has it
// with Options.Processes.
func (c *Cluster) Kubelet() *kubelet.Kubelet { return c.kubelet }

// startKubelet starts what runs pods as processes. programs holds those of sluice's image.
func (c *Cluster) startKubelet(ctx context.Context) error {
	programs, err := Programs(ctx)
	if err != nil {
		return err
	}
	c.kubelet, err = kubelet.New(kubelet.Config{
		API: c.Config, Port: c.port(portAPI), Programs: programs, Addresses: c.block.processes(),
		Folder: filepath.Join(c.dir, "kubelet"), Environment: imageEnvironment(),
	})
	return err
}

// processes is the half of the block that pods have their addresses of which are processes.
func (b *block) processes() netip.Prefix {
	at := b.prefix.Addr().As4()
	at[2] += 1 << (24 - blockBits - 1)
	return netip.PrefixFrom(netip.AddrFrom4(at), blockBits+1)
}

// AddProcessNodes adds nodes whose pods are processes of this machine.
func (c *Cluster) AddProcessNodes(ctx context.Context, n Nodes) error {
	for i := range n.Count {
		if err := c.kubelet.AddNode(ctx, fmt.Sprintf("%s-%d", n.Name, i), n.Labels, n.Capacity); err != nil {
			return err
		}
	}
	return nil
}

// imageEnvironment says where the library is, which in sluice's image lies where the program looks for it.
func imageEnvironment() []string {
	root := Root()
	onnx := filepath.Join(root, "node_modules/onnxruntime-node/bin/napi-v6/linux/x64/libonnxruntime.so.1")
	return []string{"SLUICE_ONNXRUNTIME=" + onnx}
}

// Programs builds the programs of sluice's image, where they are not built yet, and returns their folder. Go's build
// cache makes it quick.
func Programs(ctx context.Context) (string, error) {
	dir := filepath.Join(Root(), ".cache", "programs")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for _, it := range []struct{ in, pkg, cgo string }{
		{Root(), "./cmd/sluice", "1"}, {filepath.Join(Root(), "operator"), "./cmd/sluice-operator", "0"},
	} {
		cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", dir, it.pkg)
		cmd.Dir = it.in
		cmd.Env = append(os.Environ(), "CGO_ENABLED="+it.cgo, "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("building %s: %w: %s", it.pkg, err, out)
		}
	}
	return dir, nil
}
