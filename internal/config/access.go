package config

import (
	"net/url"
	"strings"

	"github.com/sluice-serving/sluice/internal/limits"
)

// longestName bounds the names of tenants and callers, in bytes: they are labels of metrics and words of key files.
const longestName = 100

// mostTenants bounds the labels of metrics.
const mostTenants = 1000

func (c *checker) tenants() {
	c.need(len(c.f.Tenants) <= mostTenants, "tenants", "lists %d tenants, at most %d are taken", len(c.f.Tenants),
		mostTenants)
	seen := make(map[string]bool)
	for i, t := range c.f.Tenants {
		path := at("tenants", i)
		c.need(isWord(t.Name), path+".name", "is %.40q, want 1 to %d characters without spaces, and not -", t.Name,
			longestName)
		c.need(!seen[t.Name], path+".name", "%q is the name of an earlier tenant", t.Name)
		seen[t.Name] = true
		c.need(t.SequenceRate >= 0 && t.SequenceRate <= limits.SequenceRate, path+".sequence_rate",
			"is %v, want 0 to %g queries/s", t.SequenceRate, limits.SequenceRate)
		c.need(t.Burst == 0 || t.Rate > 0, path+".burst", "has no effect without rate")
	}
}

func isWord(s string) bool {
	return s != "" && s != "-" && s[0] != '#' && len(s) <= longestName &&
		!strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

func (c *checker) access() {
	a := &c.f.Access
	c.need(len(a.Certificates) == 0 || c.f.Server.TLS.ClientCA != "", "access.certificates",
		"needs server.tls.client_ca: nobody else checks the certificates")
	seen := make(map[string]bool)
	for i, x := range a.Certificates {
		path := at("access.certificates", i)
		c.need(x.Name != "", path+".name", "is empty, want a name in the certificate")
		c.need(!seen[x.Name], path+".name", "%q is the name of an earlier caller", x.Name)
		seen[x.Name] = true
		c.need(len(x.Roles) > 0, path+".roles", "is empty: the caller could do nothing")
		if x.Tenant != "" {
			c.known(x.Tenant, c.f.tenantNames(), path+".tenant", "tenant")
		}
	}
	j := &a.JWT
	given := j.Issuer != "" || j.Audience != "" || j.KeyFile != "" || j.KeyURL != ""
	c.need(!given || j.Issuer != "" && j.Audience != "", "access.jwt",
		"needs issuer and audience: a token for another service must not open this one")
	c.need(!given || (j.KeyFile == "") != (j.KeyURL == ""), "access.jwt", "give one of key_file and key_url")
	if j.KeyURL != "" {
		u, err := url.Parse(j.KeyURL)
		c.need(err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname())),
			"access.jwt.key_url", "is %.200q, want https://HOST/PATH: whoever can change the answer can sign tokens",
			j.KeyURL)
	}
	t := &c.f.Server.TLS
	c.need(!t.ClientOptional || t.ClientCA != "", "server.tls.client_optional", "has no effect without client_ca")
	c.need(!t.Admin || t.Cert != "", "server.tls.admin", "has no effect without cert and key")
}

func (f *File) tenantNames() (out []string) {
	for _, t := range f.Tenants {
		out = append(out, t.Name)
	}
	return out
}

// Identifies reports whether callers have to show who they are.
func (a *Access) Identifies() bool {
	return a.Keys != "" || len(a.Certificates) > 0 || a.JWT.Issuer != ""
}
