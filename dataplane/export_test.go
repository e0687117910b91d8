package dataplane

import "github.com/sluice-serving/sluice/engine"

// Held counts the queries and the batches that a plane holds something for.
func (p *Plane) Held() (calls, jobs int) {
	p.Inspect(func(*engine.Engine) { calls, jobs = len(p.calls), len(p.jobs) })
	return calls, jobs
}
