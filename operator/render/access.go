package render

import (
	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/cell"
)

// tls are the files of the dispatchers' front, where the fleet has them: it ends TLS for the cell's run.
func (r *rendering) tls() (out config.TLS) {
	t := r.in.Fleet.Spec.TLS
	if t == nil {
		return out
	}
	out.Cert, out.Key = cell.FileCert, cell.FileCertKey
	if t.ClientCA != nil {
		out.ClientCA, out.ClientOptional = cell.FileClientCA, t.ClientOptional
	}
	return out
}

// access says who may call: the cell's run asks everybody, also for what another replica passes on.
func (r *rendering) access() (out config.Access) {
	a := r.in.Fleet.Spec.Access
	if a == nil {
		return out
	}
	if a.Keys != "" {
		out.Keys = cell.FileKeys
	}
	for _, x := range a.Certificates {
		out.Certificates = append(out.Certificates, config.Certificate{
			Name: x.Name, Tenant: x.Tenant, Roles: words(x.Roles),
		})
	}
	if j := a.JWT; j != nil {
		out.JWT = config.JWT{Issuer: j.Issuer, Audience: j.Audience, KeyURL: j.KeyURL, TenantClaim: j.TenantClaim,
			RolesClaim: j.RolesClaim, Roles: words(j.Roles)}
		if j.KeySet != "" {
			out.JWT.KeyFile = cell.FileTokenKeys
		}
	}
	out.Anonymous = words(a.Anonymous)
	return out
}

func words[R v1alpha1.Role | v1alpha1.AnonymousRole](roles []R) (out []string) {
	for _, x := range roles {
		out = append(out, string(x))
	}
	return out
}

// tenants are the fleet's.
func (r *rendering) tenants() (out []config.Tenant) {
	for _, t := range r.in.Fleet.Spec.Tenants {
		out = append(out, config.Tenant{
			Name: t.Name, Weight: float64(max(t.Weight, 1)), Rate: float64(t.Rate), Concurrency: int(t.Concurrency),
		})
	}
	return out
}
