package device

import "strconv"

// throttles are the bits of nvidia-smi's clocks_event_reasons.active, as NVML documents them (nvmlClocksEventReasons).
var throttles = []struct {
	bit  uint64
	name string
	slow bool // it slows work down, and is not what somebody has set
}{
	{0x1, "idle", false},
	{0x2, "clocks set by applications", false},
	{0x4, "power limit", true},
	{0x8, "hardware slowdown", true},
	{0x10, "boosts with others", false},
	{0x20, "heat (software)", true},
	{0x40, "heat (hardware)", true},
	{0x80, "power brake", true},
	{0x100, "display clocks", false},
}

func slows(name string) bool {
	for _, t := range throttles {
		if t.name == name {
			return t.slow
		}
	}
	return false
}

// throttled names the bits that are set. Unknown ones are given as a number.
func throttled(bits uint64) (names []string) {
	for _, t := range throttles {
		if bits&t.bit != 0 {
			names = append(names, t.name)
			bits &^= t.bit
		}
	}
	if bits != 0 {
		names = append(names, "0x"+strconv.FormatUint(bits, 16))
	}
	return names
}
