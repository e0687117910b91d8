package access

import (
	"crypto/x509"
	"strings"
	"time"
)

// Caller is who calls, and what it may do.
type Caller struct {
	Name   string // "anonymous" for one who has shown nothing
	How    string // how it is known: key, jwt, certificate, token or none
	Tenant int    // 1 + its place among the tenants; 0 for none
	Roles  Roles
}

// May reports whether the caller has all of the given roles.
func (c *Caller) May(r Roles) bool { return c != nil && c.Roles&r == r }

// Shown is what a caller shows of itself.
type Shown struct {
	Authorization string            // the header of that name
	Key           string            // the header X-API-Key
	Certificate   *x509.Certificate // a verified one; nil for none
}

// secret returns the key or token that a caller shows, without the word before it.
func (s *Shown) secret() string {
	if s.Key != "" {
		return s.Key
	}
	kind, secret, _ := strings.Cut(s.Authorization, " ")
	if !strings.EqualFold(kind, "Bearer") {
		return ""
	}
	return strings.TrimSpace(secret)
}

// Identifier is a way to know callers. Its method is called from many goroutines at once.
type Identifier interface {
	// Identify returns who shows this. It returns nil when it does not know the caller; why is then "", or what is
	// wrong with what was shown, without any of its content.
	Identify(s *Shown, now time.Time) (c *Caller, why string)
}

// The ways in which callers are known.
const (
	byKey         = "key"
	byJWT         = "jwt"
	byCertificate = "certificate"
	byToken       = "token"
	byNothing     = "none"
)
