package dataplane

import "github.com/sluice-serving/sluice/engine"

// Held counts the queries and the batches that a plane holds something for.
func (p *Plane) Held() (calls, jobs int) {
	p.Inspect(func(*engine.Engine) { calls, jobs = len(p.calls), len(p.jobs) })
	return calls, jobs
}

// CrashWith does what the owner of a closed plane does when a step with these inputs panics with x.
func (p *Plane) CrashWith(in []engine.Input, x any) {
	defer p.crashing()
	p.in = in
	panic(x)
}
