package server

import (
	"context"
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/api/access"
	"github.com/sluice-serving/sluice/internal/api/listen"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/measure/telemetry"
	"github.com/sluice-serving/sluice/serving"
)

// watchedTrouble logs failures to read files that have changed.
func (s *Server) watchedTrouble(err error) { s.log.Warn("access", "error", err) }

// admit adds to c who may call, within which limits, and what is written down of it.
func (s *Server) admit(c *server.Config) error {
	f := s.planned.File()
	a := &f.Access
	tenants := accessTenants(f)
	number := access.TenantNumber(tenants)
	gate := access.Config{Tenants: tenants, Strict: a.Identifies()}
	if path := f.Server.AdminToken; path != "" {
		var err error
		if c.Token, err = server.Token(f.Path(path)); err != nil {
			return err
		}
		token, err := access.Watch(f.Path(path), s.watchedTrouble, func([]byte) (string, error) {
			return server.Token(f.Path(path))
		})
		if err != nil {
			return fault.Errorf(fault.Config, "server.admin_token: %w", err)
		}
		gate.Identifiers = append(gate.Identifiers, access.Token(token.Get))
	}
	if a.Keys != "" {
		keys, err := access.Keys(f.Path(a.Keys), number, s.watchedTrouble)
		if err != nil {
			return fault.Errorf(fault.Config, "access.keys: %w: sluice key makes one", err)
		}
		gate.Identifiers = append(gate.Identifiers, keys)
	}
	if len(a.Certificates) > 0 {
		callers := make(map[string]access.Caller, len(a.Certificates))
		for _, x := range a.Certificates {
			roles, err := access.ParseRoles(x.Roles)
			if err != nil {
				return fault.Errorf(fault.Config, "access.certificates: %w", err)
			}
			tenant, _ := number(x.Tenant)
			callers[x.Name] = access.Caller{Tenant: tenant, Roles: roles}
		}
		gate.Identifiers = append(gate.Identifiers, access.Certificates(callers))
	}
	if a.JWT.Issuer != "" {
		tokens, err := s.tokens(&a.JWT, number)
		if err != nil {
			return fault.Errorf(fault.Config, "access.%w", err)
		}
		gate.Identifiers = append(gate.Identifiers, tokens)
	}
	var err error
	if gate.Open, err = access.ParseRoles(a.Anonymous); err != nil {
		return fault.Errorf(fault.Config, "access.anonymous: %w", err)
	}
	if a.Anonymous == nil && !gate.Strict {
		gate.Open = access.Look | access.Infer
	}
	if c.ModelControl {
		gate.Open |= access.Deploy | access.Administer
	}
	c.Gate = access.New(gate)
	s.telemetry.CountCallers(func() (out telemetry.Callers) {
		for _, x := range c.Gate.Counts() {
			out.Counts = append(out.Counts, telemetry.CallerCount(x))
		}
		for _, x := range c.Gate.Loads() {
			out.Tenants = append(out.Tenants, telemetry.TenantLoad{
				Tenant: x.Tenant, Active: x.Active, Limit: x.Limit, Remaining: x.Remaining,
			})
		}
		out.Times = s.tenantTimes()
		return out
	})
	return s.writeDown(c)
}

// tenantTimes is the machine time that tenants have used so far, by app.
func (s *Server) tenantTimes() (out []telemetry.TenantTime) {
	if len(s.planned.Spec().Tenants) == 0 {
		return nil
	}
	s.plane.Inspect(func(e *engine.Engine) {
		for a := range e.Spec().Apps {
			for k, t := range e.Spec().Tenants {
				out = append(out, telemetry.TenantTime{
					App: e.Spec().Apps[a].Name, Tenant: t.Name, Used: e.MachineTime(serving.AppID(a), k+1),
				})
			}
		}
	})
	return out
}

// writeDown opens the audit log and the access log.
func (s *Server) writeDown(c *server.Config) error {
	f := s.planned.File()
	open := func(path, field string) (*access.Lines, error) {
		l, err := access.OpenLines(f.Path(path), s.watchedTrouble)
		if err != nil {
			return nil, fault.Errorf(fault.Config, "%s: %w", field, err)
		}
		s.onRelease(l.Close)
		return l, nil
	}
	c.Audit = func(e *access.Entry) {
		s.log.LogAttrs(context.Background(), slog.LevelInfo, "audit", slog.String("who", e.Who),
			slog.String("how", e.How),
			slog.String("tenant", e.Tenant), slog.String("from", e.From), slog.String("what", e.What),
			slog.String("target", e.Target), slog.String("result", e.Result), slog.String("id", e.ID))
	}
	if path := f.Access.Audit; path != "" {
		l, err := open(path, "access.audit")
		if err != nil {
			return err
		}
		c.Audit = func(e *access.Entry) { l.Write(e) }
	}
	if path := f.Access.Log; path != "" {
		l, err := open(path, "access.log")
		if err != nil {
			return err
		}
		c.AccessLog, c.AccessEvery = l, f.Access.LogEvery
	}
	return nil
}

// tokens knows callers by the tokens of an issuer, whose keys it fetches until the server is released.
func (s *Server) tokens(j *config.JWT, number func(string) (int, bool)) (access.Identifier, error) {
	f := s.planned.File()
	roles, err := access.ParseRoles(j.Roles)
	if err != nil {
		return nil, err
	}
	c := access.JWTConfig{
		Issuer: j.Issuer, Audience: j.Audience, KeyURL: j.KeyURL, TenantClaim: j.TenantClaim, RolesClaim: j.RolesClaim,
		Roles: roles, Tenant: number, Trouble: s.watchedTrouble,
	}
	if j.KeyFile != "" {
		c.KeyFile = f.Path(j.KeyFile)
	}
	ctx, stop := context.WithCancel(context.Background())
	out, err := access.JWT(ctx, c)
	if err != nil {
		stop()
		return nil, err
	}
	s.onRelease(func() error { stop(); return nil })
	return out, nil
}

// accessTenants are the tenants of a file, in its order, which is that of serving.Spec.Tenants.
func accessTenants(f *config.File) (out []access.Tenant) {
	for _, t := range f.Tenants {
		out = append(out, access.Tenant{
			Name: t.Name, Weight: t.Weight, Rate: t.Rate, Burst: t.Burst, Work: t.Work, Concurrency: t.Concurrency,
			MaxTimeout: time.Duration(t.Timeout), Priority: int32(t.Priority), SequenceRate: t.SequenceRate,
		})
	}
	return out
}

// tlsConfig reads the certificates that the file names, and again when they change. It returns nil if it names none.
func (s *Server) tlsConfig() (*tls.Config, error) {
	f, names := s.planned.File(), &s.planned.File().Server.TLS
	if names.Cert == "" {
		return nil, nil
	}
	files := listen.TLSFiles{Cert: f.Path(names.Cert), Key: f.Path(names.Key), ClientOptional: names.ClientOptional}
	if names.ClientCA != "" {
		files.ClientCA = f.Path(names.ClientCA)
	}
	c, err := files.Config(s.watchedTrouble)
	if err != nil {
		return nil, fault.Errorf(fault.Config, "server.tls: %w", err)
	}
	return c, nil
}
