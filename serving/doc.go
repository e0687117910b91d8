// Package serving holds the vocabulary that every other package speaks: time, queries, apps, stages, variants, device
// types and the measured latency tables that belief and simulated truth both start from. It decides nothing.
package serving
