package config

import (
	"fmt"
	"strings"
)

// didYouMean returns " (did you mean X?)" for the known word closest to word, or nothing when none is close. The second
// result is that word.
func didYouMean(word string, known []string) (hint, best string) {
	if len(word) > 64 {
		return "", ""
	}
	limit := max(1, len(word)/3)
	plain := strings.NewReplacer("-", "", "_", "", " ", "")
	for _, k := range known {
		d := distance(strings.ToLower(word), strings.ToLower(k))
		if plain.Replace(strings.ToLower(word)) == plain.Replace(strings.ToLower(k)) {
			d = 0
		}
		if d <= limit {
			limit, best = d-1, k
		}
	}
	if best == "" {
		return "", ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best), best
}

// distance counts the insertions, deletions, replacements and swaps of neighbours that turn a into b (optimal string
// alignment).
func distance(a, b string) int {
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

// oneOf joins the known words for a message.
func oneOf(known []string) string {
	switch n := len(known); n {
	case 0:
		return "nothing"
	case 1:
		return known[0]
	default:
		return strings.Join(known[:n-1], ", ") + " or " + known[n-1]
	}
}
