// Package serving holds the vocabulary that every other package speaks: time, queries, apps, stages, variants, device
// types, and measured latencies. It decides nothing.
//
// Measured latencies are plain data here because two packages start from them: serving/profile makes beliefs of them,
// sim/truth the behaviour of simulated machines.
package serving
