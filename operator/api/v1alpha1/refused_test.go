package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/operator/internal/cluster"
)

const (
	head    = "apiVersion: sluice.dev/v1alpha1\nmetadata: {name: x}\n"
	variant = `{name: a, model: {uri: "pvc://models/a"}}`
)

// TestMalformedResourcesAreRefused writes resources as a user would, on the real API server: one that is wrong is
// refused with a sentence that says what is.
func TestMalformedResourcesAreRefused(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	ns := c.Namespace(t)
	app := func(spec string) string { return head + "kind: InferenceApp\nspec: {" + spec + "}\n" }
	machine := func(spec string) string { return head + "kind: MachineType\nspec: {" + spec + "}\n" }
	fleet := func(spec string) string { return head + "kind: Fleet\nspec: {" + spec + "}\n" }
	fine := "objective: {latency: 50ms}, variants: [" + variant + "]"
	for _, it := range []struct{ name, text, want string }{
		{"both variants and stages", app(fine + ", stages: [{name: s, variants: [" + variant + "]}]"),
			"an app has either variants or stages"},
		{"neither variants nor stages", app("objective: {latency: 50ms}"), "an app has either variants or stages"},
		{"no objective", app("variants: [" + variant + "]"), "spec.objective: Required value"},
		{"no such percentile", app(`objective: {latency: 50ms, percentile: 101}, variants: [` + variant + `]`),
			"percentile must be more than 0 and at most 100"},
		{"a target below the floor", app(fine + `, accuracyTarget: "0.5", accuracyFloor: "0.6"`),
			"accuracyTarget must not be below accuracyFloor"},
		{"a target above 1", app(fine + `, accuracyTarget: "92"`), "accuracyTarget must be from 0 to 1"},
		{"an accuracy above 1", app(
			`objective: {latency: 50ms}, variants: [{name: a, accuracy: "1.2", model: {uri: "pvc://m/a"}}]`),
			"accuracy must be from 0 to 1"},
		{"an accuracy that is no number", app(
			`objective: {latency: 50ms}, variants: [{name: a, accuracy: high, model: {uri: "pvc://m/a"}}]`),
			"accuracy must be from 0 to 1"},
		{"a weight of 0", app(fine + ", weight: 0"), "weight must be more than 0"},
		{"a negative demand", app(fine + ", demand: -1"), "demand is in queries/s and must not be negative"},
		{"fewer than none", app(fine + ", minInstances: -1"), "should be greater than or equal to 0"},
		{"at most fewer than at least", app(fine + ", minInstances: 3, maxInstances: 2"),
			"maxInstances must not be below minInstances"},
		{"no such late policy", app(fine + ", late: never"), `supported values: "drop", "serve-late"`},
		{"https without a digest", app(
			`objective: {latency: 50ms}, variants: [{name: a, model: {uri: "https://example.org/m.onnx"}}]`),
			"a model from https needs sha256, so that what is served is what was meant"},
		{"no such scheme", app(
			`objective: {latency: 50ms}, variants: [{name: a, model: {uri: "ftp://example.org/m"}}]`),
			"should match '^(pvc|oci|https|s3|file)://.+'"},
		{"two variants of one name", app("objective: {latency: 50ms}, variants: [" + variant + ", " + variant + "]"),
			"Duplicate value"},
		{"a stage with a function and variants", app(
			"objective: {latency: 50ms}, stages: [{name: s, function: topk, variants: [" + variant + "]}]"),
			"a stage has either variants or a function"},
		{"a rented machine without a price", machine("most: 1"), "a rented machine needs pricePerHour"},
		{"a negative price", machine("most: 1, pricePerHour: -1, tenure: owned"), "pricePerHour must not be negative"},
		{"a machine type without a number", machine("pricePerHour: 1"), "spec.most: Required value"},
		{"too many machines", machine("most: 20000, pricePerHour: 1"), "should be less than or equal to 10000"},
		{"no such tenure", machine("most: 1, pricePerHour: 1, tenure: borrowed"),
			`supported values: "owned", "rented"`},
		{"no budget", fleet("budget: 0"), "budget is in $/h and must be more than 0"},
		{"no dispatchers", fleet("dispatchers: 0"), "should be greater than or equal to 1"},
		{"a surge of words", fleet("maxSurge: some"), "should match '^([0-9]+|[0-9]+%)$'"},
		{"access of nobody", fleet("access: {anonymous: [look]}"), "access needs keys, certificates or jwt"},
		{"certificates that nobody checks", fleet(
			"tls: {secret: a}, access: {certificates: [{name: till, roles: [infer]}]}"),
			"access.certificates needs tls.clientCA: nobody else checks the certificates"},
		{"a caller that may do nothing", fleet(
			"tls: {secret: a, clientCA: {secret: b}}, access: {certificates: [{name: till, roles: []}]}"),
			"should have at least 1 items"},
		{"no such role", fleet(
			"tls: {secret: a, clientCA: {secret: b}}, access: {certificates: [{name: till, roles: [rule]}]}"),
			`supported values: "look", "infer", "deploy", "administer"`},
		{"TLS without a secret", fleet("tls: {}"), "spec.tls.secret: Required value"},
		{"authorities in two places", fleet("tls: {secret: a, clientCA: {secret: b, configMap: c}}"),
			"authorities are in either a secret or a configMap"},
		{"optional certificates of no authority", fleet("tls: {secret: a, clientOptional: true}"),
			"clientOptional has no effect without clientCA"},
		{"an issuer without keys", fleet("access: {jwt: {issuer: a, audience: b}}"),
			"the issuer's keys are at either keyURL or in a keySet"},
		{"an issuer's keys in plain text", fleet("access: {jwt: {issuer: a, audience: b, keyURL: \"http://c/d\"}}"),
			"should match '^https://[^/]+'"},
		{"an unknown field", fleet("budgets: 3"), `unknown field "spec.budgets"`},
	} {
		t.Run(it.name, func(t *testing.T) {
			out, err := c.Kubectl(t.Context(), it.text, "create", "-n", ns, "-f", "-")
			if err == nil || !strings.Contains(err.Error(), it.want) {
				t.Errorf("%s\n%s%v\nwant %q", it.text, out, err, it.want)
			}
		})
	}
	for _, text := range []string{
		app(fine), machine("most: 1, pricePerHour: \"0.5\""), machine("most: 1, tenure: owned"),
		fleet("budget: \"12.5\""),
		fleet("tls: {secret: a, clientCA: {configMap: b, key: ca}, clientOptional: true}, access: {keys: k, " +
			"certificates: [{name: \"spiffe://x/a\", tenant: shop, roles: [look, infer]}], " +
			"jwt: {issuer: i, audience: a, keyURL: \"https://id.example/jwks\", tenantClaim: t}}"),
	} {
		if out, err := c.Kubectl(t.Context(), text, "create", "--dry-run=server", "-n", ns, "-f", "-"); err != nil {
			t.Errorf("%s\n%s%v", text, out, err)
		}
	}

	// `kubectl explain` is the reference manual.
	for field, want := range map[string]string{
		"inferenceapp.spec.objective.latency": "Latency within which a query is to be answered",
		"machinetype.spec.most":               "Most is how many there can be",
		"fleet.spec.budget":                   "Budget is the most that a plan may cost",
		"fleet.spec.tls.secret":               "Secret is the name of a Secret of type kubernetes.io/tls",
		"fleet.spec.access.jwt.keyURL":        "KeyURL is where the issuer publishes its keys",
		"profile.spec.latencies":              "Latencies by batch",
	} {
		out, err := c.Kubectl(t.Context(), "", "explain", field)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("explain %s: %v\n%s", field, err, out)
		}
	}
	if _, err := c.Kubectl(t.Context(), app(fine), "create", "-n", ns, "-f", "-"); err != nil {
		t.Fatal(err)
	}
	out, err := c.Kubectl(t.Context(), "", "get", "inferenceapps", "-n", ns)
	if head := strings.Fields(strings.SplitN(out, "\n", 2)[0]); err != nil ||
		strings.Join(head, " ") != "NAME OBJECTIVE MET QUERIES/S LATE ACCURACY MACHINES $/H" {
		t.Errorf("the columns are %v, %v", head, err)
	}
	// `kubectl scale` sets the least number of instances.
	if _, err := c.Kubectl(t.Context(), "", "scale", "inferenceapp/x", "-n", ns, "--replicas=3"); err != nil {
		t.Fatal(err)
	}
	out, err = c.Kubectl(t.Context(), "", "get", "inferenceapp/x", "-n", ns, "-o", "jsonpath={.spec.minInstances}")
	if err != nil || out != "3" {
		t.Errorf("after scale: %q, %v", out, err)
	}
}
