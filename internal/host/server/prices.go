package server

import (
	"slices"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/serving"
)

// prices lists the present prices of machines.
func (s *service) prices() []server.Price {
	var out []server.Price
	s.plane.Inspect(func(e *engine.Engine) {
		for d, t := range s.spec.Load().DeviceTypes {
			out = append(out, server.Price{DeviceType: t.Name, PricePerHour: e.Price(serving.DeviceTypeID(d))})
		}
	})
	return out
}

// setPrice changes the price of a device type, and reports whether there is such a type. Calls of prices after it
// return the new price.
func (s *service) setPrice(x server.Price) bool {
	d := slices.IndexFunc(s.spec.Load().DeviceTypes, func(t serving.DeviceType) bool { return t.Name == x.DeviceType })
	if d < 0 {
		return false
	}
	s.plane.SetPrice(serving.DeviceTypeID(d), x.PricePerHour)
	s.settle()
	return true
}
