package render

import (
	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/resources"
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
	resources.Take(&out, a)
	if a.Keys != "" {
		out.Keys = cell.FileKeys
	}
	if a.JWT != nil && a.JWT.KeySet != "" {
		out.JWT.KeyFile = cell.FileTokenKeys
	}
	return out
}

// tenants are the fleet's.
func (r *rendering) tenants() (out []config.Tenant) {
	var f config.File
	resources.Take(&f, &r.in.Fleet.Spec)
	return f.Tenants
}
