package profiler

import "time"

// Size is a batch size, in items, with the number of batches that ran at once.
type Size struct{ Batch, Concurrency int }

// Observed is a profile of one variant on one device type of runs that were seen, in service, by their sizes.
func Observed(variant, device string, took map[Size][]time.Duration) *File {
	f := &File{Version: Version, Created: time.Now().UTC().Truncate(time.Second), DeviceType: device, Points: []Point{},
		Loads: []Load{}}
	for size, runs := range took { // any order: sorted below
		q := point{subject: &profiledVariant{name: variant}, batch: size.Batch, concurrency: size.Concurrency}
		for _, d := range runs {
			q.samples = append(q.samples, float64(max(d, 1))/1e3)
		}
		f.Points = append(f.Points, q.result(device))
	}
	f.sort()
	return f
}
