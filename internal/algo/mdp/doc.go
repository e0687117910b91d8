// Package mdp solves finite Markov decision processes over a number of decisions, and finds the stationary distribution
// of a policy (Puterman, Markov Decision Processes, 1994, chapter 4 and appendix A).
package mdp
