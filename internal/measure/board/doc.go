// Package board keeps what a dashboard shows of an engine: the latest minutes second by second, the latest day minute
// by minute, what every worker holds and runs, the latest plans, and the latest queries that missed their objective.
//
// A Board only watches. It follows the inputs and decisions of every step, so that it shows a live server, a simulated
// run and a replayed journal alike. Its memory is bounded: everything is a ring. Readers get copies.
package board
