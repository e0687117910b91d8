package cluster

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
)

func TestAPIServerHasOurResources(t *testing.T) {
	c := Start(t, Options{})
	fleet := &v1alpha1.Fleet{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: c.Namespace(t)}}
	if err := c.Client.Create(t.Context(), fleet); err != nil {
		t.Fatal(err)
	}
	if fleet.Spec.Dispatchers != 2 {
		t.Errorf("dispatchers are %d, want the default, 2", fleet.Spec.Dispatchers)
	}
	out, err := c.Kubectl(t.Context(), "", "get", "fleets", "-A", "-o", "name")
	if err != nil || strings.TrimSpace(out) != "fleet.sluice.dev/default" {
		t.Errorf("kubectl: %q, %v", out, err)
	}
	c.StopAPI()
	if err := c.StartAPI(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(fleet), fleet); err != nil {
		t.Errorf("after a restart of the API server: %v", err)
	}
}

// TestPodsAnswerRequests shows the whole: a Deployment gets pods, and a process of this machine answers at their
// addresses.
func TestPodsAnswerRequests(t *testing.T) {
	c := Start(t, Options{Controllers: true, Nodes: []Nodes{{Name: "n", Count: 2}}})
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Context().Value(http.LocalAddrContextKey))
	})}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()

	ns := c.Namespace(t)
	labels := map[string]string{"app": "x"}
	replicas := int32(3)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: ns}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "x"}}}},
	}}
	if err := c.Client.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	var pods corev1.PodList
	Eventually(t, "the pods are ready", func() error {
		var now appsv1.Deployment
		if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(d), &now); err != nil {
			return err
		}
		if now.Status.ReadyReplicas != 3 {
			return fmt.Errorf("%d are ready", now.Status.ReadyReplicas)
		}
		return c.Client.List(t.Context(), &pods, client.InNamespace(ns))
	})
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	for _, p := range pods.Items {
		at := net.JoinHostPort(p.Status.PodIP, port)
		res, err := http.Get("http://" + at)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		if string(body) != at {
			t.Errorf("pod %s answered as %s, want %s", p.Name, body, at)
		}
	}
}

// TestNothingSurvivesADeadTest starts a control plane in another process, kills that, and looks for what it started.
func TestNothingSurvivesADeadTest(t *testing.T) {
	if os.Getenv("SLUICE_CLUSTER_DIES") != "" {
		c, err := Open(Options{})
		if err != nil {
			fmt.Println("failed:", err)
			return
		}
		fmt.Println("pids:", c.etcd.cmd.Process.Pid, c.apiserver.cmd.Process.Pid)
		os.Stdout.Sync()
		time.Sleep(time.Hour) // until it is killed
	}
	Need(t)
	dir := t.TempDir()
	cmd := exec.CommandContext(context.Background(), os.Args[0], "-test.run=^TestNothingSurvivesADeadTest$")
	cmd.Env = append(os.Environ(), "SLUICE_CLUSTER_DIES=yes", "TMPDIR="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := StartTied(cmd); err != nil {
		t.Fatal(err)
	}
	var etcd, apiserver int
	if n, err := fmt.Fscanf(out, "pids: %d %d\n", &etcd, &apiserver); n != 2 {
		rest, _ := io.ReadAll(out)
		t.Fatalf("%v: %s", err, rest)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for _, pid := range []int{etcd, apiserver} {
		Eventually(t, fmt.Sprintf("process %d ends", pid), func() error {
			if err := syscall.Kill(pid, 0); err == nil && !zombie(pid) {
				return fmt.Errorf("it is there")
			}
			return nil
		})
	}
}

func zombie(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(data), ") Z ")
}
