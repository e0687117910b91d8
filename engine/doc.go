// Package engine is the scheduler: one state machine without effects. Facts and the present time go in, decisions come
// out. It starts no goroutine, reads no clock, writes no log and holds no client. Two drivers own it, sim and
// dataplane; neither contains a scheduling rule. It composes three small ports: route, batch and scale. The fourth,
// plan, is slow: the engine asks for a plan by a decision and later receives it as an input.
//
// The contract with a driver:
//
//   - Inputs of one instant are given to one Step, in the order of Sort. Inputs that are Stale are left out.
//   - now never goes back.
//   - Step is called again at NextWake when nothing happened before.
//   - Slices in decisions are valid until the next Step.
//   - Every started batch is answered by exactly one BatchDone, unless its instance is reported lost.
package engine
