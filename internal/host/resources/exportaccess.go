package resources

import (
	"math"
	"slices"
	"strings"

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

func (e *exporter) tls() *fleetTLS {
	t := &e.file.Server.TLS
	if t.Cert == "" {
		return nil
	}
	out := &fleetTLS{Secret: e.needed("tls", "secret tls NAME --cert=FILE --key=FILE", t.Cert, t.Key)}
	if t.ClientCA != "" {
		name := e.needed("client-ca", "configmap NAME --from-file=ca.crt=FILE", t.ClientCA)
		out.ClientCA, out.ClientOptional = &authorities{ConfigMap: name}, t.ClientOptional
	}
	e.note("the certificate of the fleet has to name its service, %s", e.how.Fleet)
	return out
}

func (e *exporter) access() *fleetAccess {
	a := &e.file.Access
	out := &fleetAccess{}
	if a.Keys != "" {
		out.Keys = e.needed("keys", "secret generic NAME --from-file=keys=FILE", a.Keys)
	}
	for _, x := range a.Certificates {
		out.Certificates = append(out.Certificates, certificate{x.Name, x.Tenant, x.Roles})
	}
	out.JWT = e.tokens(&a.JWT)
	for _, r := range a.Anonymous {
		if r == "look" || r == "infer" {
			out.Anonymous = append(out.Anonymous, r)
		}
	}
	if len(out.Anonymous) < len(a.Anonymous) {
		e.lost("access.anonymous", "callers who show nothing may look and infer at most")
	}
	if out.Keys == "" && out.Certificates == nil && out.JWT == nil {
		if len(a.Anonymous) > 0 {
			e.lost("access.anonymous", "access of a Fleet needs keys, certificates or jwt: without them everybody may "+
				"look and infer")
		}
		return nil
	}
	return out
}

func (e *exporter) tokens(j *config.JWT) *fleetJWT {
	if j.Issuer == "" {
		return nil
	}
	out := &fleetJWT{Issuer: j.Issuer, Audience: j.Audience, KeyURL: j.KeyURL, TenantClaim: j.TenantClaim,
		RolesClaim: j.RolesClaim, Roles: j.Roles}
	switch {
	case j.KeyFile != "":
		out.KeySet = e.needed("jwks", "configmap NAME --from-file=jwks.json=FILE", j.KeyFile)
	case !strings.HasPrefix(j.KeyURL, "https://"):
		e.lost("access.jwt.key_url", "a Fleet fetches an issuer's keys over https alone: tokens are not taken")
		return nil
	}
	return out
}

func (e *exporter) tenants() (out []tenant) {
	whole := func(x float64, path string) int {
		n := min(max(math.Ceil(x), 0), math.MaxInt32)
		if n != x {
			e.lost(path, "a Fleet has whole numbers: %v becomes %v", x, n)
		}
		return int(n)
	}
	scale := e.weightScale()
	for i, t := range e.file.Tenants {
		path := at("tenants", i)
		out = append(out, tenant{t.Name, whole(t.Weight*scale, path+".weight"), whole(t.Rate, path+".rate"),
			whole(float64(t.Concurrency), path+".concurrency")})
	}
	if slices.ContainsFunc(out, func(t tenant) bool { return t.Rate > 0 || t.Concurrency > 0 }) {
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
