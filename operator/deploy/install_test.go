package deploy_test

import (
	"fmt"
	"log"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/cli"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/operator/internal/cluster"
)

const system = "sluice-system"

// helm is Helm for the cluster, in sluice-system.
func helm(t *testing.T, c *cluster.Cluster) *action.Configuration {
	t.Helper()
	settings := cli.New()
	settings.KubeConfig = c.Kubeconfig
	settings.SetNamespace(system)
	var out action.Configuration
	if err := out.Init(settings.RESTClientGetter(), system, "secret", log.New(t.Output(), "", 0).Printf); err != nil {
		t.Fatal(err)
	}
	return &out
}

// install installs the chart, or changes what is installed, and waits until everything is ready. With dryRun the API
// server checks it, and nothing changes.
func install(t *testing.T, h *action.Configuration, values string, upgrade, dryRun bool) error {
	t.Helper()
	c, err := loader.Load("chart")
	if err != nil {
		t.Fatal(err)
	}
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	if upgrade {
		u := action.NewUpgrade(h)
		u.Namespace, u.Wait, u.Timeout = system, !dryRun, 3*time.Minute
		if dryRun {
			u.DryRunOption = "server"
		}
		_, err = u.Run("sluice", c, given)
		return err
	}
	i := action.NewInstall(h)
	i.ReleaseName, i.Namespace, i.Wait, i.Timeout = "sluice", system, !dryRun, 3*time.Minute
	if dryRun {
		i.DryRunOption = "server"
	}
	_, err = i.Run(c, given)
	return err
}

// restricted makes a namespace that takes only pods of the strictest profile.
func restricted(t *testing.T, c *cluster.Cluster, name string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		"pod-security.kubernetes.io/enforce": "restricted"}}}
	if err := c.Client.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	cluster.Eventually(t, "the namespace has a service account", func() error {
		return c.Client.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "default"}, &corev1.ServiceAccount{})
	})
}

func TestInstall(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Controllers: true, Empty: true,
		Nodes: []cluster.Nodes{{Name: "n", Count: 2}}})
	restricted(t, c, system)
	restricted(t, c, "models")
	h := helm(t, c)
	for _, step := range []struct {
		values  string
		upgrade bool
		pods    map[string]int // by part
	}{
		{"", false, map[string]int{"operator": 2}},
		{"{operator: {replicas: 1}, picker: {fleets: [{namespace: models, fleet: default}]}}", true,
			map[string]int{"operator": 1, "picker": 2}},
		{"{namespaces: [models], networkPolicies: {modelPorts: [9000]}, monitoring: {dashboard: true}}", true,
			map[string]int{"operator": 2, "picker": 0}},
	} {
		if err := install(t, h, step.values, step.upgrade, true); err != nil {
			t.Fatalf("as a dry run with %q: %v", step.values, err)
		}
		if err := install(t, h, step.values, step.upgrade, false); err != nil {
			t.Fatalf("with %q: %v", step.values, err)
		}
		for part, want := range step.pods {
			cluster.Eventually(t, fmt.Sprintf("%d pods of %s run", want, part), func() error {
				var pods corev1.PodList
				if err := c.Client.List(t.Context(), &pods, client.MatchingLabels{
					"app.kubernetes.io/component": part}); err != nil {
					return err
				}
				if len(pods.Items) != want {
					return fmt.Errorf("there are %d", len(pods.Items))
				}
				for _, p := range pods.Items {
					if p.Status.Phase != corev1.PodRunning {
						return fmt.Errorf("%s is %s", p.Name, p.Status.Phase)
					}
				}
				return nil
			})
		}
	}
	// With namespaces given, the operator has rights in them alone.
	rights(t, c, "system:serviceaccount:sluice-system:sluice-operator", map[string]bool{
		"create deployments.apps -n models": true, "create deployments.apps -n default": false,
		"list fleets.sluice.dev -n models": true, "list fleets.sluice.dev --all-namespaces": false,
	})
}

// TestRights holds what the roles of the chart allow and refuse, as the API server decides it.
func TestRights(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Controllers: true, Empty: true})
	restricted(t, c, system)
	restricted(t, c, "models")
	kubectl := func(input string, args ...string) {
		if out, err := c.Kubectl(t.Context(), input, args...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	kubectl("", "apply", "--server-side", "-k", "kustomize")
	kubectl("", "create", "serviceaccount", "dispatcher", "-n", "models")
	const operator, dispatcher = "system:serviceaccount:sluice-system:sluice-operator",
		"system:serviceaccount:models:dispatcher"
	// The operator may give dispatchers their role and no other.
	kubectl("", "create", "rolebinding", "dispatcher", "-n", "models", "--clusterrole=sluice-dispatcher",
		"--serviceaccount=models:dispatcher", "--as="+operator)
	for _, role := range []string{"cluster-admin", "admin", "edit"} {
		out, err := c.Kubectl(t.Context(), "", "create", "rolebinding", "more", "-n", "models", "--clusterrole="+role,
			"--serviceaccount=models:dispatcher", "--as="+operator)
		if err == nil || !strings.Contains(err.Error(), "forbidden") {
			t.Errorf("the operator gave away %s: %v %s", role, err, out)
		}
	}
	rights(t, c, operator, map[string]bool{
		"list fleets.sluice.dev --all-namespaces": true, "create deployments.apps -n models": true,
		"patch inferenceapps.sluice.dev -n models --subresource=status": true,
		"update inferenceapps.sluice.dev -n models":                     false,
		"delete fleets.sluice.dev -n models":                            false,
		"get secrets -n models":                                         false,
		"create pods -n models":                                         false,
		"create clusterrolebindings":                                    false,
		"create clusterroles":                                           false,
		"update leases.coordination.k8s.io -n sluice-system":            true,
		"list nodes": false,
	})
	rights(t, c, dispatcher, map[string]bool{
		"create pods -n models": true, "delete pods -n models": true,
		"update leases.coordination.k8s.io -n models":            true,
		"patch fleets.sluice.dev -n models --subresource=status": true,
		"patch fleets.sluice.dev -n models":                      false,
		"create pods -n sluice-system":                           false,
		"get secrets -n models":                                  false,
		"update configmaps -n models":                            false,
		"create deployments.apps -n models":                      false,
		"create pods -n models --subresource=exec":               false,
	})
}

// rights asks the API server what a user may do.
func rights(t *testing.T, c *cluster.Cluster, user string, want map[string]bool) {
	t.Helper()
	for what, allowed := range want {
		args := append([]string{"auth", "can-i"}, strings.Fields(what)...)
		out, err := c.Kubectl(t.Context(), "", append(args, "--as="+user)...)
		answer := strings.TrimSpace(out)
		if answer != "yes" && !strings.HasPrefix(answer, "no") {
			t.Errorf("%s, %s: %q, %v", user, what, out, err)
		} else if (answer == "yes") != allowed {
			t.Errorf("%s may %s: %s", user, what, answer)
		}
	}
}
