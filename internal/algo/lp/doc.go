// Package lp solves linear programs in canonical form by the primal simplex method:
//
//	maximise    sum_j Cost_j x_j
//	subject to  sum_j a_ij x_j <= b_i   for every row i, with b_i >= 0
//	            0 <= x_j <= Upper_j     for every column j
//
// The point x = 0 is always feasible, so there is no first phase. The duals (row prices) are exact at the optimum and,
// together with a point, prove how far from it that point is. Columns may be added after a solve and the next solve
// continues from the last basis, as column generation needs it.
//
// It is made for small programs that are solved often (some hundred rows, some thousand columns, microseconds to
// milliseconds): no allocation once a program has reached its size. Large or integer programs belong to a solver behind
// internal/algo/milp.
package lp
