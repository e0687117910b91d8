// Package measuring measures the models of a configuration: how long they take, how accurate they are and what serving
// them costs beside. It also predicts latencies from their operators.
package measuring
