// Package planning answers questions about fleets, without starting anything: what a system would run for a demand,
// what keeps a demand from being carried and what would mend that, what accuracy a fleet gives at every throughput, and
// which machines to rent for how much money. Answers are values that can be written as JSON.
//
// In them rates are in queries/s where nothing else is said, accuracies and shares fractions in [0, 1].
package planning
