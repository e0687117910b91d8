package serving

import "slices"

// Tenure says whether money is saved by leaving a machine of a device type idle.
type Tenure uint8

const (
	// TenureUnstated is what a configuration says that says nothing. The machines count as owned, but for planners
	// that keep the rule of a paper in which every machine is rented.
	TenureUnstated Tenure = iota
	// Owned machines are there anyway: no planner saves their price.
	Owned
	// Rented machines are paid for while they are used.
	Rented
)

var tenureNames = [...]string{"", "owned", "rented"}

// ParseTenure reads owned or rented. Anything else is TenureUnstated.
func ParseTenure(word string) Tenure {
	for t, name := range tenureNames {
		if word == name {
			return Tenure(t)
		}
	}
	return TenureUnstated
}

// String returns the word; empty for TenureUnstated.
func (t Tenure) String() string { return tenureNames[t] }

// Rents reports whether machines of some device type are rented.
func (s *Spec) Rents() bool {
	return slices.ContainsFunc(s.DeviceTypes, func(d DeviceType) bool { return d.Tenure == Rented })
}
