// Package serving defines the types that all other packages use: time, queries, apps, stages, variants, device types,
// and measured latencies. It makes no decisions.
//
// Measured latencies are plain data here because two packages start from them: serving/profile makes beliefs of them,
// sim/truth the behaviour of simulated machines.
package serving
