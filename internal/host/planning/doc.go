// Package planning answers questions about fleets without starting anything: the plan of a system for a demand, the
// bottlenecks of a demand that is not carried and the remedies for it, the accuracy of a fleet at every throughput, and
// the machines to rent for a budget. Answers are values that can be written as JSON.
//
// Rates are in queries/s unless said otherwise; accuracies and shares are fractions in [0, 1].
package planning
