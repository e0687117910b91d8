// Package tidal plans for pools: every worker has every variant, queries wait in one queue for all of them, and what is
// prepared is not a policy but what a state of the pool is worth, so that a router can weigh what it sees. It is ours.
// It answers what RAMSIS (EuroSys 2024) leaves open: the reward is the accuracy of a query, not of a decision; time
// counts; a late query has a price, which is raised until late ones are as rare as asked; and workers are pooled.
package tidal
