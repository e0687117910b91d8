package scaler_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
	"github.com/sluice-serving/sluice/operator/scaler"
	"github.com/sluice-serving/sluice/operator/scaler/pb"
)

// started runs a scaler on a cluster.
func started(t *testing.T, c *cluster.Cluster, metrics string) (*scaler.Scaler, pb.ExternalScalerClient) {
	t.Helper()
	s, err := scaler.New(t.Context(), scaler.Options{Config: c.Config, Listen: "127.0.0.1:0", ExternalMetrics: metrics,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	run, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(run) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("it ended with %v", err)
		}
	})
	conn, err := grpc.NewClient(s.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return s, pb.NewExternalScalerClient(conn)
}

// app makes an InferenceApp with one instance.
func app(t *testing.T, c *cluster.Cluster, namespace, name string) *v1alpha1.InferenceApp {
	t.Helper()
	a := &v1alpha1.InferenceApp{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: v1alpha1.InferenceAppSpec{Objective: v1alpha1.Objective{Latency: metav1.Duration{Duration: time.Second}},
			MinInstances: 1, Variants: []v1alpha1.Variant{{Name: "v", Model: v1alpha1.Model{URI: "file:///models/v"}}}}}
	if err := c.Client.Create(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	return a
}

// report writes an app's status as its dispatcher does.
func report(t *testing.T, c *cluster.Cluster, a *v1alpha1.InferenceApp, rate string, instances int32) {
	t.Helper()
	before := a.DeepCopy()
	a.Status.Rate, a.Status.Instances = rate, instances
	a.Status.Selector = "sluice.dev/fleet=default,sluice.dev/role=worker"
	if err := c.Client.Status().Patch(t.Context(), a, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func ref(namespace, name string, metadata ...string) *pb.ScaledObjectRef {
	m := map[string]string{}
	for i := 0; i < len(metadata); i += 2 {
		m[metadata[i]] = metadata[i+1]
	}
	return &pb.ScaledObjectRef{Name: name, Namespace: namespace, ScalerMetadata: m}
}

func TestKEDA(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	_, keda := started(t, c, "")
	ctx, ns := t.Context(), c.Namespace(t)
	a := app(t, c, ns, "digits")
	asked := ref(ns, "any", "app", "digits", "target", "2.5")

	spec, err := keda.GetMetricSpec(ctx, asked)
	if err != nil {
		t.Fatal(err)
	}
	if m := spec.MetricSpecs; len(m) != 1 || m[0].TargetSizeFloat != 2.5 || m[0].TargetSize != 3 ||
		m[0].MetricName == "" {
		t.Errorf("the metrics are %v", m)
	}
	rate := func(want float64) {
		t.Helper()
		cluster.Eventually(t, "the rate is told", func() error {
			got, err := keda.GetMetrics(ctx, &pb.GetMetricsRequest{ScaledObjectRef: asked,
				MetricName: spec.MetricSpecs[0].MetricName})
			if err != nil {
				return err
			}
			if v := got.MetricValues; len(v) != 1 || v[0].MetricValueFloat != want {
				return fmt.Errorf("it is %v, want %v", v, want)
			}
			return nil
		})
	}
	rate(0)
	stream, err := keda.StreamIsActive(ctx, asked)
	if err != nil {
		t.Fatal(err)
	}
	pushed := func(want bool) {
		t.Helper()
		got, err := stream.Recv()
		if err != nil || got.Result != want {
			t.Fatalf("active: %v, %v; want %v", got.GetResult(), err, want)
		}
	}
	pushed(false)
	report(t, c, a, "0.4", 1)
	pushed(true)
	rate(0.4)
	report(t, c, a, "12.75", 1)
	rate(12.75)
	report(t, c, a, "0", 1)
	pushed(false) // only changes are pushed

	report(t, c, a, "3", 1)
	pushed(true)
	for threshold, want := range map[string]bool{"2.9": true, "3": false} {
		got, err := keda.IsActive(ctx, ref(ns, "digits", "target", "1", "threshold", threshold))
		if err != nil || got.Result != want {
			t.Errorf("active above %s: %v, %v; want %v", threshold, got.GetResult(), err, want)
		}
	}
	if err := c.Client.Delete(ctx, a); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.NotFound {
		t.Errorf("after the app was deleted: %v", err)
	}
	for _, x := range []struct {
		in   *pb.ScaledObjectRef
		code codes.Code
		want string
	}{
		{ref(ns, "digits"), codes.InvalidArgument, "target is \"\""},
		{ref(ns, "digits", "target", "0"), codes.InvalidArgument, "a number above 0"},
		{ref(ns, "digits", "target", "NaN"), codes.InvalidArgument, "a number above 0"},
		{ref(ns, "digits", "target", "1", "threshold", "-1"), codes.InvalidArgument, "threshold is \"-1\""},
		{ref("", "digits", "target", "1"), codes.InvalidArgument, "names no InferenceApp"},
		{ref(ns, "none", "target", "1"), codes.NotFound, "there is no InferenceApp " + ns + "/none"},
	} {
		_, err := keda.IsActive(ctx, x.in)
		if status.Code(err) != x.code || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v: %v, want %v %q", x.in, err, x.code, x.want)
		}
	}
}

// TestAutoscaler has Kubernetes' own autoscaler read our metric through the API server and set an app's least number of
// instances.
func TestAutoscaler(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Controllers: true})
	s, _ := started(t, c, "127.0.0.1:0")
	ns := c.Namespace(t)
	a := app(t, c, ns, "digits")
	report(t, c, a, "40", 1)
	_, port, err := net.SplitHostPort(s.MetricsAddr())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: scaler, namespace: %s}
spec: {type: ExternalName, externalName: localhost}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.external.metrics.k8s.io}
spec:
  group: external.metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {name: scaler, namespace: %s, port: %s}
`, ns, ns, port), fmt.Sprintf(`
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: digits, namespace: %s}
spec:
  scaleTargetRef: {apiVersion: sluice.dev/v1alpha1, kind: InferenceApp, name: digits}
  minReplicas: 1
  maxReplicas: 25
  metrics:
    - type: External
      external:
        metric: {name: sluice-queries-per-second, selector: {matchLabels: {app: digits}}}
        target: {type: AverageValue, averageValue: "4"}
`, ns)} {
		if out, err := c.Kubectl(t.Context(), text, "apply", "-f", "-"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	cluster.Eventually(t, "the API server passes the metric on", func() error {
		out, err := c.Kubectl(t.Context(), "", "get", "--raw",
			"/apis/external.metrics.k8s.io/v1beta1/namespaces/"+ns+"/sluice-queries-per-second"+
				"?labelSelector=app%3Ddigits")
		if err == nil && !strings.Contains(out, `"value":"40"`) {
			err = fmt.Errorf("it says %s", out)
		}
		return err
	})
	cluster.Eventually(t, "the autoscaler asks for 10 instances", func() error {
		if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(a), a); err != nil {
			return err
		}
		if a.Spec.MinInstances != 10 {
			return fmt.Errorf("minInstances is %d", a.Spec.MinInstances)
		}
		return nil
	})
	// Nobody but the API server may ask.
	if res, err := http.Get("https://" + s.MetricsAddr() + "/apis"); err == nil {
		res.Body.Close()
		t.Error("a caller without the API server's certificate was answered")
	}
	for metric, want := range map[string]string{
		"sluice-queries-per-second": "name the InferenceApp", "other?labelSelector=app%3Ddigits": "there is no metric",
	} {
		_, err := c.Kubectl(t.Context(), "", "get", "--raw",
			"/apis/external.metrics.k8s.io/v1beta1/namespaces/"+ns+"/"+metric)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", metric, err, want)
		}
	}
}
