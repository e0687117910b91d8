package config

import (
	"fmt"
	"strings"

	"github.com/sluice-serving/sluice/internal/algo/spelling"
)

// didYouMean returns " (did you mean X?)" for the known word closest to word, and that word; empty when none is close.
func didYouMean(word string, known []string) (hint, best string) {
	if best = spelling.Nearest(word, known); best == "" {
		return "", ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best), best
}

// oneOf joins known words in a message.
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
