package config

import (
	"fmt"
	"slices"
	"strings"
)

// remarks notes what is taken over and means something else than in Triton. They are for files that people keep.
func (im *importer) remarks() {
	steps := make(map[string]bool)
	for i := range im.apps {
		for _, s := range im.apps[i].Stages {
			for _, v := range s.Variants {
				steps[v.Model] = true
			}
		}
	}
	var twice []string
	unbounded, late, joined := false, false, false
	for i := range im.apps {
		a := &im.apps[i]
		if a.VersionOf == "" && steps[a.Name] {
			twice = append(twice, fmt.Sprintf("%q", a.Name))
		}
		m := im.members[a.Name]
		if m == nil || !m.local {
			continue
		}
		unbounded = unbounded || a.Queue.places() == 0
		late = late || !a.Queue.waits()
		joined = joined || m.Config.DynamicBatching == nil && m.Config.SequenceBatching == nil &&
			m.Config.GetMaxBatchSize() > 1
	}
	if len(twice) > 0 {
		slices.Sort(twice)
		im.notef("apps of their own and steps of ensembles as well: %s: each is loaded for both and has a queue for "+
			"each, where Triton has one; delete the apps that nobody calls by themselves", strings.Join(twice, ", "))
	}
	if unbounded {
		im.notef("Triton bounds no queue without max_queue_size: here an app refuses queries while %d wait "+
			"(queue_limit)", DefaultQueueLimit)
	}
	if late {
		im.notef("Triton answers queries however long they waited, unless default_timeout_microseconds is set: here " +
			"an app gives up those that are certain to miss an objective that you write, unless it says late: " +
			"serve-late")
	}
	if joined {
		im.notef("Triton runs the queries of models without dynamic_batching one by one: here they are joined, up to " +
			"max_batch")
	}
}
