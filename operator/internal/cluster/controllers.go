package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// startControllers starts what makes things happen: controller manager, scheduler, simulated nodes.
func (c *Cluster) startControllers(context.Context) error {
	a := c.auth
	stages := a.path("stages.yaml")
	if err := os.WriteFile(stages, []byte(stagesText(c.options.Start)), 0o600); err != nil {
		return err
	}
	grace := c.options.NodeGrace
	if grace == 0 {
		grace = 20 * time.Second
	}
	// More calls than by default: nobody else uses this API server.
	rate := []string{"--kube-api-qps=1000", "--kube-api-burst=2000"}
	for _, it := range []struct {
		program string
		args    []string
	}{
		{"kube-controller-manager", append([]string{
			"--kubeconfig=" + a.path("kube-controller-manager.kubeconfig"), "--leader-elect=false", "--secure-port=0",
			"--use-service-account-credentials", "--root-ca-file=" + a.path("ca.crt"),
			"--service-account-private-key-file=" + a.path("service-accounts.key"),
			fmt.Sprintf("--node-monitor-period=%v", max(time.Second, grace/60)),
			fmt.Sprintf("--node-monitor-grace-period=%v", grace),
		}, rate...)},
		{"kube-scheduler", append([]string{
			"--kubeconfig=" + a.path("kube-scheduler.kubeconfig"), "--leader-elect=false", "--secure-port=0",
		}, rate...)},
		{"kwok", []string{
			"--kubeconfig=" + a.path("kwok.kubeconfig"), "--config=" + stages, "--v=ERROR",
			"--cidr=" + c.block.simulated().String(), "--manage-nodes-with-label-selector=" + simulatedNode,
			// A node tells that it lives four times in that while.
			fmt.Sprintf("--node-lease-duration-seconds=%d", int(grace.Seconds())),
		}},
	} {
		p, err := start(c.dir, filepath.Join(c.tools, it.program), it.args...)
		if err != nil {
			return err
		}
		c.others = append(c.others, p)
	}
	return nil
}
