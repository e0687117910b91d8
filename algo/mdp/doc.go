// Package mdp solves finite Markov and semi-Markov decision processes: value iteration, policy iteration, the long-run
// average of rewards per unit of time, and stationary distributions (Puterman, Markov Decision Processes, 1994,
// chapters 6, 8 and 11).
package mdp
