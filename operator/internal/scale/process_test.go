package scale

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/sluice-serving/sluice/operator/internal/cluster"
)

// used is what a process has used so far.
type used struct {
	cpu  time.Duration
	rss  int64 // bytes that it has now
	peak int64 // bytes that it had at most
}

// ticksPerSecond is the unit of processor times in /proc on Linux.
const ticksPerSecond = 100

// usedBy reads what a process has used.
func usedBy(t *testing.T, pid int) (u used) {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name before may hold anything
	fields := strings.Fields(rest)
	const user, system = 11, 12 // utime and stime, counted behind the name
	for _, at := range []int{user, system} {
		n, err := strconv.ParseInt(fields[at], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		u.cpu += time.Duration(n) * time.Second / ticksPerSecond
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kib); n == 1 {
			u.rss = kib << 10
		}
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			u.peak = kib << 10
		}
	}
	return u
}

// operator is the operator's program as it is installed, in a process of its own.
type operator struct {
	*testing.T
	cmd     *exec.Cmd
	metrics string
	pprof   string
	log     string
}

func startOperator(t *testing.T, c *cluster.Cluster) *operator {
	t.Helper()
	programs, err := cluster.Programs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o := &operator{T: t, metrics: freeAddress(t), pprof: freeAddress(t),
		log: filepath.Join(t.TempDir(), "operator.log")}
	out, err := os.Create(o.log)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	o.cmd = exec.CommandContext(context.Background(), filepath.Join(programs, "sluice-operator"), "operator",
		"--kubeconfig", c.Kubeconfig, "--image", "sluice:scale", "--metrics", o.metrics, "--health", "0",
		"--pprof", o.pprof, "--leader-elect=false")
	o.cmd.Stdout, o.cmd.Stderr = out, out
	if err := cluster.StartTied(o.cmd); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- o.cmd.Wait() }()
	t.Cleanup(func() {
		_ = o.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			_ = o.cmd.Process.Kill()
			t.Error("the operator did not end within 30 s")
		}
		if t.Failed() {
			text, err := os.ReadFile(o.log)
			t.Logf("the operator's log (%v): %s", err, text[max(0, len(text)-4000):])
		}
	})
	return o
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func get(address string) ([]byte, error) {
	c := http.Client{Timeout: 2 * time.Minute}
	r, err := c.Get(address) //nolint:noctx // the client has a timeout
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", address, r.Status)
	}
	return io.ReadAll(r.Body)
}

// series are the operator's metrics by name.
func (o *operator) series() (out map[string]*dto.MetricFamily) {
	o.Helper()
	cluster.Eventually(o.T, "the operator shows its metrics", func() error {
		text, err := get("http://" + o.metrics + "/metrics")
		if err != nil {
			return err
		}
		p := expfmt.NewTextParser(model.UTF8Validation)
		out, err = p.TextToMetricFamilies(bytes.NewReader(text))
		return err
	})
	return out
}

// calls is how often the operator has called the API server.
func (o *operator) calls() int {
	n := 0.0
	for _, m := range o.series()["rest_client_requests_total"].GetMetric() {
		n += m.GetCounter().GetValue()
	}
	return int(n)
}

// profile writes what the operator spends its time on, over some seconds, to a file of the folder SLUICE_KEEP.
func (o *operator) profile(name string, seconds int) (stop func()) {
	folder := os.Getenv(keepVariable)
	if folder == "" {
		return func() {}
	}
	done := make(chan error, 1)
	go func() {
		text, err := get(fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", o.pprof, seconds))
		done <- errors.Join(err, os.WriteFile(filepath.Join(folder, name+".pprof"), text, 0o600))
	}()
	return func() {
		if err := <-done; err != nil {
			o.Error(err)
		}
	}
}

// quantile is a quantile of a histogram of a controller, in seconds: interpolated within its bucket.
func (o *operator) quantile(all map[string]*dto.MetricFamily, name, label, value string, q float64) (at float64,
	count uint64) {
	for _, m := range all[name].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == label && l.GetValue() == value {
				return quantileOf(m.GetHistogram(), q), m.GetHistogram().GetSampleCount()
			}
		}
	}
	return 0, 0
}

func quantileOf(h *dto.Histogram, q float64) float64 {
	rank, below, from := q*float64(h.GetSampleCount()), 0.0, 0.0
	for _, b := range h.GetBucket() {
		if n := float64(b.GetCumulativeCount()); n >= rank && n > below {
			return from + (b.GetUpperBound()-from)*(rank-below)/(n-below)
		} else {
			below, from = n, b.GetUpperBound()
		}
	}
	return from
}
