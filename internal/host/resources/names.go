package resources

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxName is the length of the longest name: worker pods, labels and services carry it, too.
const maxName = 63

// names gives out names that Kubernetes takes (RFC 1123 labels), each once.
type names map[string]bool

// give returns a name itself if Kubernetes takes it and it is free, else one like it.
func (n names) give(name string) (given string, same bool) {
	given = name
	if !label(name) {
		given = cleaned(name)
	}
	for given == "" || len(given) > maxName || n[given] {
		sum := sha256.Sum256([]byte(name + "\n" + given))
		short := cleaned(name)
		if len(short) > maxName-9 {
			short = strings.TrimRight(short[:maxName-9], "-")
		}
		given = strings.TrimPrefix(short+"-"+hex.EncodeToString(sum[:4]), "-")
	}
	n[given] = true
	return given, given == name
}

// cleaned replaces what Kubernetes does not take by dashes.
func cleaned(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else if !strings.HasSuffix(b.String(), "-") {
			b.WriteByte('-')
		}
	}
	return strings.Trim(b.String(), "-")
}

// label reports whether a name is one that Kubernetes takes everywhere.
func label(name string) bool {
	if name == "" || len(name) > maxName || name[0] == '-' || name[len(name)-1] == '-' {
		return false
	}
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' {
			return false
		}
	}
	return true
}
