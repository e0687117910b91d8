package storm

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/controller"
	"github.com/sluice-serving/sluice/operator/picker"
	"github.com/sluice-serving/sluice/operator/supply"
)

// staleMost is how long a picker may name a pod that is gone.
const staleMost = 15 * time.Second

// startPicker begins a picker: what tells gateways where to send queries.
func (w *storm) startPicker() *process {
	w.table.Use(&picker.Table{})
	return w.launch("picker", func(ctx context.Context, p *process) error {
		f, err := picker.NewFollower(picker.Options{Config: p.link.config(), Namespace: namespace, Fleet: fleetName,
			Every: time.Second, Admin: 8002, Net: w.net.Of(p.ip),
			Log: slog.New(slog.NewTextHandler(&w.log, nil)).With("pod", p.name)})
		if err != nil {
			return err
		}
		return f.Run(ctx, func(t *picker.Table) {
			if !p.link.now().dead {
				w.table.Use(t)
			}
		})
	})
}

// setDispatchers has the pods of these processes be there, as the Deployment's controller and kubelets do.
func (s *apiServer) setDispatchers(list []*process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := call{of: kindOf("pods")}
	there := make(map[types.NamespacedName]bool)
	for _, p := range list {
		c.key = types.NamespacedName{Namespace: namespace, Name: p.name}
		there[c.key] = true
		condition := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}
		if p.ready.Load() && !p.killed && !p.over() {
			condition.Status = corev1.ConditionTrue
		}
		before, _ := s.objects[c.of][c.key].(*corev1.Pod)
		if before == nil {
			o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: p.name,
				Labels: map[string]string{
					v1alpha1.LabelFleet: fleetName, v1alpha1.LabelRole: controller.RoleDispatcher}}}
			o.SetGroupVersionKind(c.of.gvk)
			o.Status.PodIP, o.Status.Conditions = p.ip, []corev1.PodCondition{condition}
			s.begin(c, o)
			s.put(c, nil, o)
		} else if before.Status.Conditions[0] != condition {
			o := before.DeepCopy()
			o.Status.Conditions = []corev1.PodCondition{condition}
			s.put(c, before, o)
		}
	}
	for key, o := range s.objects[c.of] {
		if c.key = key; o.GetLabels()[v1alpha1.LabelRole] == controller.RoleDispatcher && !there[key] {
			s.put(c, o, nil)
		}
	}
}

// named are the addresses that the picker may send to.
func (w *storm) named() map[string]bool {
	out := make(map[string]bool)
	t := w.table.Table()
	for _, list := range t.Apps {
		for _, c := range list {
			out[c.Address] = true
		}
	}
	for _, c := range t.Dispatchers {
		out[c.Address] = true
	}
	return out
}

// watchPicker looks whether the picker names what is gone.
func (w *storm) watchPicker() {
	if w.picker.killed || w.picker.link.now().faults != (faults{}) {
		clear(w.stale)
		return
	}
	there := make(map[string]bool)
	w.api.mu.Lock()
	for _, o := range w.api.objects[kindOf("pods")] {
		there[o.(*corev1.Pod).Status.PodIP] = true
	}
	w.api.mu.Unlock()
	named := w.named()
	for ip := range w.stale {
		if !named[ip] || there[ip] {
			delete(w.stale, ip)
		}
	}
	for ip := range named {
		switch since, is := w.stale[ip]; {
		case there[ip]:
		case !is:
			w.stale[ip] = time.Now()
		case time.Since(since) > staleMost:
			w.fail("the picker names %s, which nobody has for %v", ip, time.Since(since))
			w.stale[ip] = time.Now()
		}
	}
}

// pick sends a query of an app to where the picker says.
func (w *storm) pick(app string) {
	p, err := w.table.Table().Pick(app, picker.PortHTTP, nil)
	if err != nil {
		w.fail("all is calm, and for app %s the picker says: %v", app, err)
		return
	}
	defer p.Done()
	ctx, done := context.WithTimeout(context.Background(), askWithin)
	defer done()
	if p.Model == "" { // a dispatcher
		code, text := w.ask(ctx, "http://"+p.Value()+"/v2/models/"+app+"/infer", strings.NewReader(question))
		if code != http.StatusOK {
			w.fail("all is calm, and a query of %s to %s gets %d: %s", app, p.Value(), code, text)
		}
		return
	}
	c, err := grpc.NewClient(fmt.Sprintf("passthrough:///%s:%d", p.Address, supply.PortGRPC),
		w.net.Of(outside).GRPC(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(err)
	defer c.Close()
	if _, err := pb.NewGRPCInferenceServiceClient(c).ModelInfer(ctx, &pb.ModelInferRequest{ModelName: p.Model,
		Inputs: []*pb.ModelInferRequest_InferInputTensor{{Name: "x", Datatype: "FP32", Shape: []int64{1, 1},
			Contents: &pb.InferTensorContents{Fp32Contents: []float32{1}}}}}); err != nil {
		w.fail("all is calm, and a query of %s to %s, where the picker sends it, fails: %v", app, p.Address, err)
	}
}
