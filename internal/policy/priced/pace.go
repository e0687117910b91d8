package priced

import "time"

const (
	// paceFrom and paceBins say which ratios of taken to believed time are told apart: from 3/4 on in steps of 1/64.
	paceFrom, paceBins = 0.75, 64
	// paceMemory is how many batches are remembered; then all count half.
	paceMemory = 1024
	// unseen is how many batches, in time, and how many seconds, as believed, are taken to have been seen before any.
	unseenBatches, unseenSeconds = 20, 1.0
	// leastPace and mostPace bound the ratio that prices are computed with.
	leastPace, mostPace = 0.5, 2.0
)

// pace is how long batches took on machines of one type, beside what was believed. What is believed is a high
// percentile: it says by when a batch has ended, not how much time machines have.
type pace struct {
	taken, believed float64 // s of slots
	counts          [paceBins]int32
	batches         int32
	fresh           bool              // late has been computed since the last batch
	late            [paceBins]float64 // share of the batches that take longer than so many times what is believed
	anyLate         bool
}

func paceBin(ratio float64) int {
	return int(min(max((ratio-paceFrom)*paceBins, 0), paceBins-1))
}

// add takes up a batch that took a time, beside what was believed; one that took none has failed.
func (p *pace) add(took, believed time.Duration) {
	if took <= 0 || believed <= 0 {
		return
	}
	const rounding = 1e-6 // a batch that takes what is believed is not late
	p.counts[paceBin(float64(took)/float64(believed)-rounding)]++
	p.taken, p.believed = p.taken+took.Seconds(), p.believed+believed.Seconds()
	p.fresh = false
	if p.batches++; p.batches < paceMemory {
		return
	}
	p.batches = 0
	for k := range p.counts {
		p.counts[k] /= 2
		p.batches += p.counts[k]
	}
	p.taken, p.believed = p.taken/2, p.believed/2
}

// ratio returns the mean time that batches take, in what is believed of them.
func (p *pace) ratio() float64 {
	return min(max((p.taken+unseenSeconds)/(p.believed+unseenSeconds), leastPace), mostPace)
}

// update computes late anew where batches have ended.
func (p *pace) update() {
	if p.fresh {
		return
	}
	p.fresh = true
	longer := int32(0)
	for k := paceBins - 1; k >= 0; k-- {
		p.late[k] = float64(longer) / float64(p.batches+unseenBatches)
		longer += p.counts[k]
	}
	p.anyLate = p.late[paceBin(1)] > 0
}

// chanceLate returns the share of batches that take longer than so many times what is believed of them.
func (p *pace) chanceLate(ratio float64) float64 {
	if !p.anyLate {
		return 0
	}
	return p.late[paceBin(ratio)]
}

// risk is the mean of the chances that the first and the last query of a batch are late, if it is believed to take t s
// and they have so many seconds left.
func (p *pace) risk(first, last, t float64) float64 {
	if !p.anyLate {
		return 0
	}
	return (p.chanceLate(first/t) + p.chanceLate(last/t)) / 2
}
