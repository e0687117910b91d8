package ops

import (
	"encoding/binary"
	"math"
	"slices"
)

// maxTracks bounds the tracks of a state and the boxes of a frame.
const maxTracks = 2_000

// trackedBox is a box that is tracked.
type trackedBox struct {
	id, age uint64
	missed  uint32 // frames since it was last seen
	box     box
}

// tracks is the state of a stream: the tracked boxes, by id, and the last id assigned.
type tracks struct {
	last uint64
	list []trackedBox
}

// trim removes the boxes that have been missed for most frames, of equal ones the newest, until most are left.
func (t *tracks) trim(most int) {
	if len(t.list) <= most {
		return
	}
	slices.SortStableFunc(t.list, func(a, b trackedBox) int { return int(a.missed) - int(b.missed) })
	t.list = t.list[:most]
	slices.SortFunc(t.list, func(a, b trackedBox) int {
		if a.id < b.id {
			return -1
		}
		return 1
	})
}

// An encoded state is the format's version, the last id, and for each box its id, age, missed frames and coordinates,
// little-endian.
const (
	stateVersion = 1
	stateHead    = 1 + 8
	stateEach    = 8 + 8 + 4 + 4*8
)

func (t *tracks) write() []byte {
	out := make([]byte, 0, stateHead+stateEach*len(t.list))
	out = append(out, stateVersion)
	out = binary.LittleEndian.AppendUint64(out, t.last)
	for _, x := range t.list {
		out = binary.LittleEndian.AppendUint64(out, x.id)
		out = binary.LittleEndian.AppendUint64(out, x.age)
		out = binary.LittleEndian.AppendUint32(out, x.missed)
		for _, v := range x.box {
			out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
		}
	}
	return out
}

// readTracks reads a state; nil is the start of a stream.
func readTracks(data []byte) (t tracks, err error) {
	if data == nil {
		return t, nil
	}
	n := (len(data) - stateHead) / stateEach
	if len(data) < stateHead || data[0] != stateVersion || (len(data)-stateHead)%stateEach != 0 || n > maxTracks {
		return t, errState
	}
	t.last = binary.LittleEndian.Uint64(data[1:])
	t.list = make([]trackedBox, n)
	for i := range t.list {
		at, x := data[stateHead+stateEach*i:], &t.list[i]
		x.id, x.age, x.missed = binary.LittleEndian.Uint64(at), binary.LittleEndian.Uint64(at[8:]),
			binary.LittleEndian.Uint32(at[16:])
		for k := range x.box {
			x.box[k] = math.Float64frombits(binary.LittleEndian.Uint64(at[20+8*k:]))
		}
		if !x.box.finite() || x.id > t.last || i > 0 && x.id <= t.list[i-1].id {
			return tracks{}, errState
		}
	}
	return t, nil
}
