package cli

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/server"
	"github.com/sluice-serving/sluice/internal/measure/samples"
	"github.com/sluice-serving/sluice/tensor"
)

const (
	// bannerApps bounds the apps that a banner lists.
	bannerApps = 20
	// bannerElements bounds the elements of an example that a banner writes out.
	bannerElements = 64
)

// banner says what is served, with which objective, and how to call it.
func banner(e *Env, p *host.Profiled, s *server.Server) {
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
		fmt.Fprintf(w, "  %s  takes %s, %s\n", printable(app.Name), shownSpecs(p.Tables().Apps[a].Inputs), objective)
		if example < 0 && p.Tables().Apps[a].Inputs != nil {
			example = a
		}
	}
	if example >= 0 && s.HTTPAddr() != "off" {
		name := spec.Apps[example].ClientName()
		one := s.OneOutput(name)
		if body, ok := exampleBody(p.Tables().Apps[example].Inputs); ok && one == "" {
			fmt.Fprintf(w, "\ncall it:\n  curl -s %s -d %s\n",
				shellWord(base+"/v2/models/"+url.PathEscape(name)+"/infer"), shellWord(body))
		} else {
			if one != "" {
				one = " --output " + shellWord(one)
			}
			fmt.Fprintf(w, "\ncall it:\n  sluice infer %s --url %s%s\n", shellWord(name), base, one)
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

// shellWord is a text as one word of a shell: names of models and inputs come from files of others.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("_-./:@%+=,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// printable is a name as a terminal may show it: quoted where it has characters that are not to be seen.
func printable(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return s
	}
	return strconv.Quote(s)
}

func shownSpecs(specs []tensor.Spec) string {
	var out []string
	for _, s := range specs {
		shape := tensor.Dims(s.Shape).String()
		if s.Shape == nil {
			shape = "of any shape"
		}
		out = append(out, fmt.Sprintf("%s %s %s", printable(s.Name), s.DType, shape))
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
		name, err := json.Marshal(s.Name)
		if err != nil {
			return "", false
		}
		inputs = append(inputs, fmt.Sprintf(`{"name":%s,"datatype":%q,"shape":%v,"data":[%s]}`, name,
			s.DType.String(), tensor.Dims(shape), data))
	}
	return `{"inputs":[` + strings.Join(inputs, ",") + `]}`, total <= bannerElements && len(inputs) > 0
}
