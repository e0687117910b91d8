package cli

import (
	"fmt"
	"net"
	"strings"

	"github.com/sluice-serving/sluice/host"
	"github.com/sluice-serving/sluice/measure/samples"
	"github.com/sluice-serving/sluice/tensor"
)

const (
	// bannerApps bounds the apps that a banner lists.
	bannerApps = 20
	// bannerElements bounds the elements of an example that a banner writes out.
	bannerElements = 64
)

// banner says what is served, with which objective, and how to call it.
func banner(e *Env, p *host.Profiled, s *host.Server) {
	spec := p.Spec()
	base := "http://" + reachable(s.HTTPAddr())
	w := e.Stderr
	fmt.Fprintf(w, "\nsluice serves at %s (HTTP) and %s (gRPC):\n", reachable(s.HTTPAddr()), reachable(s.GRPCAddr()))
	example := -1
	for a := range spec.Apps {
		app := &spec.Apps[a]
		if a == bannerApps {
			fmt.Fprintf(w, "  and %d more: curl -s -X POST %s/v2/repository/index\n", len(spec.Apps)-a, base)
			break
		}
		objective := fmt.Sprintf("answers within %v", app.SLO.Latency)
		if app.SLO.Proposed {
			objective = fmt.Sprintf("objective %v (proposed)", app.SLO.Latency)
		}
		fmt.Fprintf(w, "  %s  takes %s, %s\n", app.Name, shownSpecs(p.Tables().Apps[a].Inputs), objective)
		if example < 0 && p.Tables().Apps[a].Inputs != nil {
			example = a
		}
	}
	if example >= 0 && s.HTTPAddr() != "off" {
		name := spec.Apps[example].ClientName()
		if body, ok := exampleBody(p.Tables().Apps[example].Inputs); ok {
			fmt.Fprintf(w, "\ncall it:\n  curl -s %s/v2/models/%s/infer -d '%s'\n", base, name, body)
		} else {
			fmt.Fprintf(w, "\ncall it:\n  sluice infer %s --url %s\n", name, base)
		}
	}
	if s.AdminAddr() != "off" {
		fmt.Fprintf(w, "metrics:\n  curl -s %s/metrics\n", reachable(s.AdminAddr()))
	}
	if s.AdminAddr() != "off" {
		fmt.Fprintf(w, "look at it:\n  http://%s/\n", reachable(s.AdminAddr()))
	}
	fmt.Fprintf(w, "the configuration that this amounts to, for a file of your own:\n  %s\n\n", p.Name())
}

// reachable is an address as a client on this machine calls it.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

func shownSpecs(specs []tensor.Spec) string {
	var out []string
	for _, s := range specs {
		shape := tensor.Dims(s.Shape).String()
		if s.Shape == nil {
			shape = "of any shape"
		}
		out = append(out, fmt.Sprintf("%s %s %s", s.Name, s.DType, shape))
	}
	switch {
	case specs == nil:
		return "what its model takes"
	case len(specs) == 0:
		return "no inputs"
	}
	return strings.Join(out, ", ")
}

// exampleBody is a request of one item of zeros in JSON; ok is false where it would be too long or has no JSON.
func exampleBody(specs []tensor.Spec) (body string, ok bool) {
	var inputs []string
	total := int64(0)
	for _, s := range specs {
		shape := samples.OneItem(s.Shape)
		n, err := tensor.Elements(shape, bannerElements)
		if err != nil || s.DType == tensor.FP16 || s.DType == tensor.BF16 || s.Shape == nil {
			return "", false
		}
		total += n
		element := map[bool]string{true: `"0"`, false: "0"}[s.DType == tensor.Bytes]
		data := strings.TrimSuffix(strings.Repeat(element+",", int(n)), ",")
		inputs = append(inputs, fmt.Sprintf(`{"name":%q,"datatype":%q,"shape":%v,"data":[%s]}`, s.Name,
			s.DType.String(),
			tensor.Dims(shape), data))
	}
	return `{"inputs":[` + strings.Join(inputs, ",") + `]}`, total <= bannerElements && len(inputs) > 0
}
