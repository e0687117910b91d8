// Package rules has the rules of INFless: rates within the bands of instances, plans when a rate leaves its band, and
// keep-alive rules, which say when an idle app is warm.
package rules
