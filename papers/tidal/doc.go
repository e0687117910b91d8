// Package tidal plans for pools: every worker has every variant, and queries wait in one queue for all workers. It
// prepares value functions of the pool's state (plan.ValueFunction) instead of policies, so that a router can compare
// its choices in every state that it meets.
//
// The method is ours. It answers questions that RAMSIS (EuroSys 2024) leaves open: the reward is the accuracy of a
// query, not of a decision; time counts; a late query has a penalty, which is raised until late queries are as rare as
// asked; and workers are pooled.
package tidal
