// Package ramsis makes policies in advance: for every state of a worker's queue the variant and the batch that bring
// most accuracy without late queries, for a known arrival process (RAMSIS, EuroSys 2024). The problem of one worker is
// a Markov decision process (§4). Its policies are plain tables (plan.Policy) that batcher policytable follows.
package ramsis
