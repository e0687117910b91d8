package planning

// limitShared lowers the capacities of apps whose instances take turns with those of other apps: a worker's time is
// spent once. Of what an app asks for it gets the part that its busiest worker has time for while every app there gets
// the same part. demand is by AppID in queries/s; without any, all apps are taken to ask for as much.
func (d *description) limitShared(demand []float64) {
	asked := demand
	if d.out.Demand == 0 {
		asked = make([]float64, len(demand))
		for a := range asked {
			asked[a] = 1
		}
	}
	busy := make([]float64, len(d.spec.Workers)) // seconds that a second's demand takes
	for n, i := range d.made.Instances {
		if i.TimeShared && d.hosts[n] > 0 {
			busy[i.Worker] += asked[d.spec.Stages[i.Stage].App] * i.Share * d.demands[i.Stage].FanOut / d.hosts[n]
		}
	}
	for n, i := range d.made.Instances {
		a := d.spec.Stages[i.Stage].App
		x := &d.out.Apps[a]
		if !i.TimeShared || i.Share == 0 || d.demands[i.Stage].FanOut == 0 {
			continue
		}
		if asked[a] > 0 {
			x.Capacity = min(x.Capacity, asked[a]/busy[i.Worker])
		} else {
			left := max(0, 1-busy[i.Worker]) * d.hosts[n] / (i.Share * d.demands[i.Stage].FanOut)
			x.Capacity = min(x.Capacity, left)
		}
	}
}
