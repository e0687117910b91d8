package access

import (
	"crypto/x509"
	"time"
)

// certificates knows callers by the names in their certificates.
type certificates map[string]*Caller

// Certificates returns what knows callers by the common name, a DNS name or a URI of a certificate that was verified.
func Certificates(byName map[string]Caller) Identifier {
	out := make(certificates, len(byName))
	for name, c := range byName {
		c.Name, c.How = name, byCertificate
		out[name] = &c
	}
	return out
}

// Identify implements Identifier.
func (c certificates) Identify(s *Shown, _ time.Time) (*Caller, string) {
	if s.Certificate == nil {
		return nil, ""
	}
	for _, name := range namesOf(s.Certificate) {
		if caller := c[name]; caller != nil {
			return caller, ""
		}
	}
	return nil, ""
}

func namesOf(x *x509.Certificate) []string {
	out := make([]string, 0, 1+len(x.DNSNames)+len(x.URIs))
	for _, u := range x.URIs {
		out = append(out, u.String())
	}
	out = append(out, x.DNSNames...)
	if x.Subject.CommonName != "" {
		out = append(out, x.Subject.CommonName)
	}
	return out
}
