// Package workload makes arrivals: when queries come, for which app, and with how many items. The simulator and the
// load generator read the same sources, so that a simulated run and a live run have the same load.
//
// Processes with a changing rate are exact. A renewal process of rate one is drawn on an operational time axis and
// mapped through the inverse of the cumulative rate, which has a closed form for piecewise constant and piecewise
// linear rates. So a rate that changes within a gap changes the gap at the right place.
//
// Every purpose has random numbers of its own, derived from the run's seed and the name of the purpose. So a further
// source or another distribution of sizes does not change the arrivals of the others.
package workload
