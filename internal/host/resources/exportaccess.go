package resources

import (
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-serving/sluice/internal/config"
)

// Files of a configuration become Secrets and ConfigMaps, which hold what no manifest should: they are named here, and
// a note says how to make each.

// needed says how an object that the fleet names is made, and returns its name.
func (e *exporter) needed(suffix, format string, files ...string) string {
	name := e.how.Fleet + "-" + suffix
	text := strings.Replace(format, "NAME", name, 1)
	for _, f := range files {
		text = strings.Replace(text, "FILE", e.file.Path(f), 1)
	}
	if e.how.Namespace != "" {
		text += " -n " + e.how.Namespace
	}
	e.note("the fleet needs %s: kubectl create %s", name, text)
	return name
}

func (e *exporter) tls() *yaml.Node {
	t := &e.file.Server.TLS
	if t.Cert == "" {
		return nil
	}
	list := []field{{"secret", e.needed("tls", "secret tls NAME --cert=FILE --key=FILE", t.Cert, t.Key)}}
	if t.ClientCA != "" {
		name := e.needed("client-ca", "configmap NAME --from-file=ca.crt=FILE", t.ClientCA)
		list = append(list, field{"clientCA", map[string]string{"configMap": name}},
			field{"clientOptional", t.ClientOptional})
	}
	e.note("the certificate of the fleet has to name its service, %s", e.how.Fleet)
	return object(list...)
}

func (e *exporter) access() *yaml.Node {
	a := e.file.Access
	keys := ""
	if a.Keys != "" {
		keys = e.needed("keys", "secret generic NAME --from-file=keys=FILE", a.Keys)
	}
	a.Anonymous = slices.DeleteFunc(slices.Clone(a.Anonymous), func(r string) bool {
		return r != "look" && r != "infer"
	})
	if len(a.Anonymous) < len(e.file.Access.Anonymous) {
		e.lost("access.anonymous", "callers who show nothing may look and infer at most")
	}
	jwt := e.tokens(&a.JWT)
	a.JWT = config.JWT{}
	if keys == "" && a.Certificates == nil && jwt == nil {
		if len(e.file.Access.Anonymous) > 0 {
			e.lost("access.anonymous", "access of a Fleet needs keys, certificates or jwt: without them everybody may "+
				"look and infer")
		}
		return nil
	}
	return object(field{"keys", keys}, field{"jwt", jwt}, field{"", &a})
}

func (e *exporter) tokens(j *config.JWT) *yaml.Node {
	if j.Issuer == "" {
		return nil
	}
	keySet := ""
	switch {
	case j.KeyFile != "":
		keySet = e.needed("jwks", "configmap NAME --from-file=jwks.json=FILE", j.KeyFile)
	case !strings.HasPrefix(j.KeyURL, "https://"):
		e.lost("access.jwt.key_url", "a Fleet fetches an issuer's keys over https alone: tokens are not taken")
		return nil
	}
	return object(field{"", j}, field{"keySet", keySet})
}

func (e *exporter) tenants() []config.Tenant {
	whole := func(x float64, path string) float64 {
		n := min(max(math.Ceil(x), 0), math.MaxInt32)
		if n != x {
			e.lost(path, "a Fleet has whole numbers: %v becomes %v", x, n)
		}
		return n
	}
	scale, out := e.weightScale(), slices.Clone(e.file.Tenants)
	for i := range out {
		t, path := &out[i], at("tenants", i)
		t.Weight, t.Rate = whole(t.Weight*scale, path+".weight"), whole(t.Rate, path+".rate")
		t.Concurrency = int(whole(float64(t.Concurrency), path+".concurrency"))
	}
	if slices.ContainsFunc(out, func(t config.Tenant) bool { return t.Rate > 0 || t.Concurrency > 0 }) {
		e.note("rate and concurrency of tenants count in each cell, of which there are as many as dispatchers")
	}
	return out
}

// weightScale is what makes all weights whole numbers; 1 where nothing small does. Only their relation counts.
func (e *exporter) weightScale() float64 {
	for k := 1.0; k <= 1000; k++ {
		if !slices.ContainsFunc(e.file.Tenants, func(t config.Tenant) bool {
			return t.Weight*k != math.Trunc(t.Weight*k)
		}) {
			return k
		}
	}
	return 1
}
