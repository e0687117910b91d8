package profile

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Started is a Profile whose loads begin with the start of a machine, where machines are had from elsewhere.
type Started struct {
	Profile
	Starts []time.Duration // by DeviceTypeID; it must not change any more
}

// Load implements Profile.
func (p Started) Load(v serving.VariantID, d serving.DeviceTypeID) time.Duration {
	return p.Profile.Load(v, d) + p.Start(d)
}

// Start returns how long a machine of a device type is believed to take to come.
func (p Started) Start(d serving.DeviceTypeID) time.Duration {
	if int(d) >= len(p.Starts) {
		return 0
	}
	return p.Starts[d]
}

// MeasuredPoints returns that of the profile beneath; see the function MeasuredPoints.
func (p Started) MeasuredPoints() MeasuredFunc { return MeasuredPoints(p.Profile) }

// Start returns which part of p.Load is the start of a machine; 0 where machines are there.
func Start(p Profile, d serving.DeviceTypeID) time.Duration {
	if s, ok := p.(interface {
		Start(serving.DeviceTypeID) time.Duration
	}); ok {
		return s.Start(d)
	}
	return 0
}

// Start returns that of the renumbered profile; see the function Start.
func (r Renumbered) Start(d serving.DeviceTypeID) time.Duration { return Start(r.Profile, d) }
