package render

import (
	"path"

	"github.com/sluice-serving/sluice/config"
	"github.com/sluice-serving/sluice/operator/cell"
)

// access says who may call: the cell's run asks everybody, also for what another replica passes on.
func (r *rendering) access() (out config.Access) {
	a := r.in.Fleet.Spec.Access
	if a == nil {
		return out
	}
	out.Keys = path.Join(cell.AccessFolder, cell.KeyAccess)
	for _, x := range a.Anonymous {
		out.Anonymous = append(out.Anonymous, string(x))
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
