// Package rules has the rules of RAMSIS: batches by policies made in advance, and plans for loads without one.
package rules
