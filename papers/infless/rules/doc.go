// Package rules has the rules of INFless: rates within the bands of instances, plans when a rate leaves its band, and
// keepers, which say when an idle app is warm.
package rules
