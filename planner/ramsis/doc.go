// Package ramsis makes policies in advance: for every state of a worker's queue the variant and the batch that bring
// most accuracy without late queries, knowing how arrivals behave (RAMSIS, EuroSys 2024). The problem of one worker is
// a Markov decision process (§4); its policies are plain tables (plan.Policy) that batcher policytable follows.
package ramsis
