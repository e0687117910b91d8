// Package spelling finds the known word that a misspelt one is closest to.
package spelling

import "strings"

// longest bounds the words that are compared, since the time grows with the product of their lengths.
const longest = 64

// Nearest returns the known word closest to word, upper and lower case being alike, and "" when none is close: a third
// of word's letters may be wrong, and at least one. Words that differ in hyphens, underscores and blanks alone are
// closest of all. Of equally close words it returns the first.
func Nearest(word string, known []string) string {
	if len(word) > longest {
		return ""
	}
	plain := strings.NewReplacer("-", "", "_", "", " ", "")
	word = strings.ToLower(word)
	best, limit := "", max(1, len(word)/3)
	for _, k := range known {
		low := strings.ToLower(k)
		d := Distance(word, low)
		if plain.Replace(word) == plain.Replace(low) {
			d = 0
		}
		if d <= limit {
			limit, best = d-1, k
		}
	}
	return best
}

// Distance counts the insertions, deletions, replacements and swaps of neighbouring bytes that turn a into b (optimal
// string alignment: no part of a word is edited twice).
func Distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
