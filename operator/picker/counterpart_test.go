package picker_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
	"github.com/sluice-serving/sluice/operator/picker"
)

// TestCounterpart sends the same requests to the reference picker, lwepp, and to ours, with a pool of two pods. Both
// must choose among the same endpoints. Where none is eligible the protocol asks for an answer of 503; the reference
// ends the stream with an error instead, which counts as a refusal here.
func TestCounterpart(t *testing.T) {
	program := os.Getenv("SLUICE_LWEPP")
	if program == "" {
		t.Skip("SLUICE_LWEPP names no reference picker: " +
			"build sigs.k8s.io/gateway-api-inference-extension/cmd/lwepp v1.6.0")
	}
	c := cluster.Start(t, cluster.Options{})
	define(t, c)
	ns, ctx := c.Namespace(t), t.Context()
	tab := &picker.Table{Apps: map[string][]picker.Choice{}}
	for n := 1; n <= 2; n++ {
		address := fmt.Sprintf("10.0.0.%d", n)
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p-%d", n), Namespace: ns,
			Labels: map[string]string{v1alpha1.LabelFleet: "f"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "c", Image: "i"}}}}
		if err := c.Client.Create(ctx, p); err != nil {
			t.Fatal(err)
		}
		p.Status = corev1.PodStatus{PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}, Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
		if err := c.Client.Status().Update(ctx, p); err != nil {
			t.Fatal(err)
		}
		tab.Apps["digits"] = append(tab.Apps["digits"], picker.Choice{
			Endpoint: &picker.Endpoint{Address: address}, Share: 1})
	}
	if err := picker.Publish(ctx, c.Client, picker.Pools(ns, "f", "f-picker", 9002, false)); err != nil {
		t.Fatal(err)
	}
	free := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		return port
	}
	port := free()
	log, err := os.Create(filepath.Join(t.TempDir(), "lwepp.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(program, "--kubeconfig="+c.Kubeconfig, "--pool-name=f", "--pool-namespace="+ns,
		"--secure-serving=false", "--grpc-port="+port, "--grpc-health-port="+free(), "--metrics-port="+free())
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	conn, err := grpc.NewClient("127.0.0.1:"+port, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ask := func(to extproc.ExternalProcessorClient, subset *structpb.Value) string {
		s, err := to.Process(ctx)
		if err != nil {
			return "refused"
		}
		in := headers(true, ":method", "POST", ":path", "/v2/models/digits/infer")
		if subset != nil {
			in.MetadataContext = &core.Metadata{FilterMetadata: map[string]*structpb.Struct{"envoy.lb.subset_hint": {
				Fields: map[string]*structpb.Value{"x-gateway-destination-endpoint-subset": subset}}}}
		}
		if err := s.Send(in); err != nil {
			return "refused"
		}
		out, err := s.Recv()
		_ = s.CloseSend()
		if err != nil || out.GetImmediateResponse() != nil {
			return "refused"
		}
		got, _ := destination(t, out)
		first, _, _ := strings.Cut(got, ",")
		return first
	}
	reference := extproc.NewExternalProcessorClient(conn)
	cluster.Eventually(t, "the reference picks", func() error {
		if got := ask(reference, nil); got == "refused" {
			text, _ := os.ReadFile(log.Name())
			return fmt.Errorf("it refuses; its log ends in %s", text[max(0, len(text)-2000):])
		}
		return nil
	})
	ours := start(t, tab).client
	list := func(v ...any) *structpb.Value {
		l, err := structpb.NewList(v)
		if err != nil {
			t.Fatal(err)
		}
		return structpb.NewListValue(l)
	}
	for name, subset := range map[string]*structpb.Value{
		"no subset": nil, "a list": list("10.0.0.2:8000"), "a text": structpb.NewStringValue("10.0.0.1:8000"),
		"blanks": structpb.NewStringValue(" 10.0.0.1:8000 , 10.0.0.2:8000 "), "any port": list("10.0.0.2"),
		"another port": list("10.0.0.2:9"), "nobody": list("10.0.0.7:8000"), "empty": list(),
		"an empty text": structpb.NewStringValue(""), "commas in a list": list("10.0.0.7:8000,10.0.0.1:8000"),
	} {
		seen := [2]map[string]bool{{}, {}}
		for range 12 {
			seen[0][ask(reference, subset)], seen[1][ask(ours, subset)] = true, true
		}
		if fmt.Sprint(seen[0]) != fmt.Sprint(seen[1]) {
			t.Errorf("%s: the reference chooses among %v, ours among %v", name, seen[0], seen[1])
		}
	}
}
