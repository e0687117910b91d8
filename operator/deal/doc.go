// Package deal gives cells their apps, their machines and their part of the budget. It decides and has no effects. A
// deal follows from the one before it: what need not move stays.
package deal
