package access

import (
	"crypto/subtle"
	"hash/maphash"
	"maps"
	"sync"
	"sync/atomic"
)

// quickSeed is drawn at the start of the process, so that nobody outside can tell which texts have equal sums.
var quickSeed = maphash.MakeSeed()

// quickSum is a sum of a secret that says nothing about it to who does not know the seed. Equal sums do not prove equal
// texts.
func quickSum(s string) uint64 { return maphash.String(quickSeed, s) }

// shownKeys remembers the keys that callers have shown rightly. To find them again takes a twentieth of the time of a
// cryptographic hash, which would be much of what a small query costs. They are in the memory of the process alone, as
// they are in the requests themselves; there are no more than lines in the key file.
type shownKeys struct {
	known atomic.Pointer[map[uint64]shownKey]
	mu    sync.Mutex // of add
}

type shownKey struct {
	secret string
	line   *keyLine
}

// find returns the line of a key that was shown before; nil for any other.
func (s *shownKeys) find(secret string) *keyLine {
	known := s.known.Load()
	if known == nil {
		return nil
	}
	k := (*known)[quickSum(secret)]
	if k.line == nil || !sameSecret(k.secret, secret) {
		return nil
	}
	return k.line
}

// sameSecret compares in a time that depends on the lengths alone, as subtle.ConstantTimeCompare does, which would copy
// both texts to the heap.
func sameSecret(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	differs := byte(0)
	for k := range len(a) {
		differs |= a[k] ^ b[k]
	}
	return subtle.ConstantTimeByteEq(differs, 0) == 1
}

// add remembers a key that was found by its hash.
func (s *shownKeys) add(secret string, line *keyLine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := make(map[uint64]shownKey)
	if was := s.known.Load(); was != nil {
		maps.Copy(known, *was)
	}
	known[quickSum(secret)] = shownKey{secret, line}
	s.known.Store(&known)
}
