// Package rules has the rules of Kairos: matching of queries with machines, plans after a shift of sizes, ours that
// schedules ahead, and DeepRecSys' threshold, a baseline.
package rules
