package spelling

import (
	"math/rand/v2"
	"testing"
)

// The table's distances are those of a search through all edits, which knows nothing of tables.
func TestDistanceAgainstAllEdits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	word := func() string {
		out := make([]byte, rng.IntN(6))
		for i := range out {
			out[i] = "abc"[rng.IntN(3)]
		}
		return string(out)
	}
	for range 2000 {
		a, b := word(), word()
		if got, want := Distance(a, b), edits(a, b); got != want {
			t.Fatalf("%q to %q: %d edits, want %d", a, b, got, want)
		}
	}
}

// edits tries every edit of the last letters.
func edits(a, b string) int {
	if a == "" || b == "" {
		return len(a) + len(b)
	}
	m, n := len(a)-1, len(b)-1
	cost := 1
	if a[m] == b[n] {
		cost = 0
	}
	out := min(edits(a[:m], b)+1, edits(a, b[:n])+1, edits(a[:m], b[:n])+cost)
	if m > 0 && n > 0 && a[m] == b[n-1] && a[m-1] == b[n] {
		out = min(out, edits(a[:m-1], b[:n-1])+1)
	}
	return out
}

func TestNearest(t *testing.T) {
	known := []string{"device_type", "proteus", "proteus-fair", "infless", "nexus"}
	for word, want := range map[string]string{
		"protues": "proteus", "Proteus-fare": "proteus-fair", "DeviceType": "device_type", "device-type": "device_type",
		"nexu": "nexus", "none": "", "": "", "infless": "infless",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("%q is closest to %q, want %q", word, got, want)
		}
	}
	if got := Nearest(string(make([]byte, longest+1)), known); got != "" {
		t.Errorf("a long word is close to %q", got)
	}
}

// Distances that are known from textbooks, the same in both directions.
func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"latncy", "latency", 1}, {"frist", "first", 1}, {"abc", "xyz", 3},
		{"kitten", "sitting", 3},
	} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
		if got := Distance(c.b, c.a); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.b, c.a, got, c.want)
		}
	}
}
