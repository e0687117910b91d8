package mdp

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"
)

// maxDirectNodes is the largest number of nodes for which a stationary distribution is found by elimination, whose time
// is cubic in them.
const maxDirectNodes = 1500

// Stationary returns, by state, the share of decisions that are taken there in the long run, when the process begins in
// state from and follows the policy (Puterman App. A).
//
// With at most 1500 nodes it solves the balance equations between nodes by elimination, in cubic time. With more nodes,
// without Spread, or if the policy leaves several recurrent classes, it iterates the chain until a step moves less than
// within in total, or for so many steps.
func (p *Process) Stationary(policy Policy, from int, within float64, steps int) []float64 {
	if p.Spread != nil && p.Spread.Len() <= maxDirectNodes {
		if share := p.solveBalance(policy); share != nil {
			return share
		}
	}
	return p.powerIteration(policy, from, within, steps)
}

// solveBalance solves the balance equations of the nodes; nil when they have no unique solution.
func (p *Process) solveBalance(policy Policy) []float64 {
	n := p.Spread.Len()
	// The transposed chain column by column: from a node over its states to the nodes that their actions lead to.
	a := mat.NewDense(n, n, nil)
	next := make([]float64, n)
	for i := range n {
		clear(next)
		states, weights := p.Spread.Row(i)
		for k, s := range states {
			p.Next.Scatter(int(policy[s]), weights[k], next)
		}
		for j, w := range next {
			a.Set(j, i, w)
		}
		a.Set(i, i, a.At(i, i)-1)
	}
	// One equation follows from the others. That the shares sum to 1 takes its place.
	for j := range n {
		a.Set(n-1, j, 1)
	}
	b := mat.NewVecDense(n, nil)
	b.SetVec(n-1, 1)
	x := solve(a, b)
	if x == nil {
		return nil
	}
	share := make([]float64, p.States())
	for i := range n {
		w := x.AtVec(i)
		if w < -1e-9 || math.IsNaN(w) {
			return nil
		}
		p.Spread.Scatter(i, max(w, 0), share)
	}
	return share
}

// leastPivot is the least magnitude of a pivot with which equations count as having one solution. With smaller ones
// their condition decides.
const leastPivot = 1e-9

// solve returns the solution of a x = b, and nil for equations that have no unique one. An estimate of the condition
// takes as long as the elimination. It is made only where the pivots leave it open.
func solve(a *mat.Dense, b *mat.VecDense) *mat.VecDense {
	n, _ := a.Dims()
	var work, x mat.Dense
	work.CloneFrom(a)
	x.CloneFrom(b)
	m, swaps := work.RawMatrix(), make([]int, n)
	open := !lapack64.Getrf(m, swaps)
	for i := range n {
		open = open || !(math.Abs(m.Data[i*m.Stride+i]) >= leastPivot)
	}
	if !open {
		lapack64.Getrs(blas.NoTrans, m, x.RawMatrix(), swaps)
		return mat.VecDenseCopyOf(x.ColView(0))
	}
	var lu mat.LU
	lu.Factorize(a)
	out := mat.NewVecDense(n, nil)
	if err := lu.SolveVecTo(out, false, b); err != nil {
		return nil
	}
	return out
}

// powerIteration moves a share of 1 step by step, beginning in state from. Half of every step stays in place, so that a
// periodic chain converges as well.
func (p *Process) powerIteration(policy Policy, from int, within float64, steps int) []float64 {
	share, next := make([]float64, p.States()), make([]float64, p.States())
	share[from] = 1
	var nodes []float64
	if p.Spread != nil {
		nodes = make([]float64, p.Spread.Len())
	}
	for range steps {
		clear(next)
		p.step(policy, share, next, nodes)
		moved := 0.0
		for s := range next {
			next[s] = (next[s] + share[s]) / 2
			moved += math.Abs(next[s] - share[s])
		}
		share, next = next, share
		if moved <= within {
			break
		}
	}
	return share
}

// step adds to next the distribution after one step of the policy from share, both by state. nodes is working memory,
// by node.
func (p *Process) step(policy Policy, share, next, nodes []float64) {
	to := next
	if p.Spread != nil {
		clear(nodes)
		to = nodes
	}
	for s, x := range share {
		if x > 0 {
			p.Next.Scatter(int(policy[s]), x, to)
		}
	}
	if p.Spread == nil {
		return
	}
	for i, x := range nodes {
		if x > 0 {
			p.Spread.Scatter(i, x, next)
		}
	}
}
