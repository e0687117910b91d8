// Package partition gives cells their apps, their machines and their part of the budget. It decides and has no effects.
// A partition follows from the one before it: what need not move stays.
package partition
