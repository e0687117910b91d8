// Package engine is the scheduler: one pure state machine. Facts and the present time go in, decisions come out; it
// starts no goroutine, reads no clock, writes no log and holds no client. Two drivers own it, sim and dataplane, and
// neither contains a scheduling rule. Inside it compose three small ports: route, batch and scale. The fourth, plan, is
// slow: the engine asks for a plan by a decision and later receives it as an input.
//
// The contract with a driver:
//
//   - Inputs of one instant are given to one Step, in the order of Sort.
//   - now never goes back.
//   - Step is called again at NextWake when nothing happened before.
//   - Slices in decisions are valid until the next Step.
//   - Every started batch is answered by exactly one BatchDone, unless its instance is reported lost.
package engine
