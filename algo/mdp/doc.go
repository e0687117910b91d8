// Package mdp solves finite Markov and semi-Markov decision processes (Puterman, Markov Decision Processes, 1994,
// chapters 4, 6, 8 and 11): value iteration, policy iteration, the long-run average reward per unit of time, and
// stationary distributions.
package mdp
