package controller

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
)

// Dispatchers get the files of their fleet's callers, and its Service says that it is encrypted. Without them a pod is
// as it was.
func TestCallersOfAFleet(t *testing.T) {
	e := newEnv(t, nil)
	f := fleetNamed("default")
	e.create(f, machinesNamed("cpu", 2), appNamed("good"))
	pod := func() corev1.PodSpec {
		d := &appsv1.Deployment{}
		cluster.Eventually(t, "the dispatchers are made", func() error { return e.get("default-dispatcher", d) })
		return d.Spec.Template.Spec
	}
	protocols := func() (out []string) {
		s := &corev1.Service{}
		if err := e.get("default", s); err != nil {
			t.Fatal(err)
		}
		for _, p := range s.Spec.Ports {
			name := p.Name + " "
			if p.AppProtocol != nil {
				name += *p.AppProtocol
			}
			out = append(out, name)
		}
		return out
	}
	if p := pod(); len(p.Volumes) != 1 || len(p.Containers[0].Args) != 2 {
		t.Errorf("without callers: %+v", p)
	}
	if got := fmt.Sprint(protocols()); got != "[http  grpc kubernetes.io/h2c]" {
		t.Errorf("the ports are %s", got)
	}
	e.update(f, func() {
		f.Spec.TLS = &v1alpha1.FleetTLS{Secret: "front", ClientCA: &v1alpha1.Authorities{ConfigMap: "ca", Key: "root"},
			ClientOptional: true}
		f.Spec.Access = &v1alpha1.FleetAccess{Keys: "callers",
			Certificates: []v1alpha1.FleetCertificate{{Name: "till", Roles: []v1alpha1.Role{"infer"}}},
			JWT:          &v1alpha1.FleetJWT{Issuer: "i", Audience: "a", KeySet: "issuer"}}
	})
	e.config("default", 0, []string{"name: till", "client_ca: /etc/sluice/client-ca/ca.crt", "issuer: i",
		"roles_claim: scope"}, nil)
	var p corev1.PodSpec
	cluster.Eventually(t, "the dispatchers have the files", func() error {
		if p = pod(); len(p.Volumes) != 5 {
			return fmt.Errorf("%d volumes", len(p.Volumes))
		}
		return nil
	})
	var got []string
	for _, v := range p.Volumes {
		switch {
		case v.Secret != nil:
			got = append(got, fmt.Sprint(v.Name, " secret ", v.Secret.SecretName, v.Secret.Items))
		case v.ConfigMap != nil:
			got = append(got, fmt.Sprint(v.Name, " configmap ", v.ConfigMap.Name, v.ConfigMap.Items))
		}
	}
	for _, m := range p.Containers[0].VolumeMounts {
		got = append(got, fmt.Sprint(m.Name, " at ", m.MountPath))
	}
	want := []string{
		"tls secret front[{tls.crt tls.crt <nil>} {tls.key tls.key <nil>}]",
		"client-ca configmap ca[{root ca.crt <nil>}]",
		"access secret callers[{keys keys <nil>}]", "tokens configmap issuer[{jwks.json jwks.json <nil>}]",
		"tmp at /tmp", "tls at /etc/sluice/tls", "client-ca at /etc/sluice/client-ca", "access at /etc/sluice/access",
		"tokens at /etc/sluice/tokens",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the volumes are\n%q, want\n%q", got, want)
	}
	if got, want := fmt.Sprint(p.Containers[0].Args[2:]), "[--tls-cert=/etc/sluice/tls/tls.crt "+
		"--tls-key=/etc/sluice/tls/tls.key --client-ca=/etc/sluice/client-ca/ca.crt --client-optional]"; got != want {
		t.Errorf("the arguments are %s, want %s", got, want)
	}
	if probe := p.Containers[0].ReadinessProbe.HTTPGet; probe.Scheme != corev1.URISchemeHTTP ||
		probe.Port.String() != "admin" {
		t.Errorf("the probe is %+v", probe)
	}
	cluster.Eventually(t, "the app's address is encrypted", func() error {
		a := e.accepted("good", metav1.ConditionTrue, "")
		if a.Status.Endpoint != "https://default."+e.ns+":8000/v2/models/good" {
			return fmt.Errorf("it is %s", a.Status.Endpoint)
		}
		return nil
	})
	if got := fmt.Sprint(protocols()); got != "[http https grpc https]" {
		t.Errorf("the ports are %s", got)
	}

	// A caller of a tenant that there is not is the fleet's mistake; what runs goes on.
	e.update(f, func() { f.Spec.Access.Certificates[0].Tenant = "nosuch" })
	cluster.Eventually(t, "the fleet says why", func() error {
		if err := e.get("default", f); err != nil {
			return err
		}
		for _, c := range f.Status.Conditions {
			if c.Type == Accepted && c.Status == metav1.ConditionFalse {
				t.Log(c.Message)
				return nil
			}
		}
		return fmt.Errorf("it is %+v", f.Status.Conditions)
	})
}
