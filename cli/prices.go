package cli

import (
	"slices"

	"github.com/sluice-serving/sluice/api/server"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/serving"
)

// prices lists what machines cost now.
func (p *platform) prices() []server.Price {
	var out []server.Price
	p.plane.Inspect(func(e *engine.Engine) {
		for d, t := range p.world.Spec.DeviceTypes {
			out = append(out, server.Price{DeviceType: t.Name, PricePerHour: e.Price(serving.DeviceTypeID(d))})
		}
	})
	return out
}

// setPrice changes what machines of a type cost, and tells whether there is such a type. Whoever asks afterwards hears
// the new price.
func (p *platform) setPrice(x server.Price) bool {
	d := slices.IndexFunc(p.world.Spec.DeviceTypes, func(t serving.DeviceType) bool { return t.Name == x.DeviceType })
	if d < 0 {
		return false
	}
	p.plane.SetPrice(serving.DeviceTypeID(d), x.PricePerHour)
	p.plane.Inspect(func(*engine.Engine) {}) // what was handed in before is stepped before the next question is heard
	return true
}
