// Package workload makes arrivals: when queries come, for which app, and how large they are. The simulator and the load
// generator read the same sources, so that a simulated run and a live run see the same load.
//
// Non-homogeneous processes are exact: a renewal process of rate one is drawn on an operational time axis and mapped
// through the inverse of the cumulative rate, which is closed-form for piecewise constant and piecewise linear rates. A
// rate that changes in the middle of a gap therefore bends the gap at the right place.
//
// Every random choice has its own stream derived from the run's seed and a purpose, so that adding a source or changing
// a size distribution does not shift the arrivals of the others.
package workload
