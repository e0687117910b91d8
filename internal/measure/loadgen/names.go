package loadgen

import "sync"

// textIDs gives small numbers to texts that many answers share. When it is full, all new texts share one number, so
// that a server which invents a text for every query cannot fill the memory.
type textIDs struct {
	mu   sync.RWMutex
	ids  map[string]int32
	list []string
}

const (
	maxNames = 1024
	maxName  = 512
	other    = "(other)"
)

func (n *textIDs) id(text string) int32 {
	if len(text) > maxName {
		text = text[:maxName]
	}
	n.mu.RLock()
	id, ok := n.ids[text]
	n.mu.RUnlock()
	if ok {
		return id
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.list) >= maxNames {
		text = other
	}
	if id, ok := n.ids[text]; ok {
		return id
	}
	if n.ids == nil {
		n.ids = map[string]int32{}
	}
	id = int32(len(n.list))
	n.list = append(n.list, text)
	n.ids[text] = id
	return id
}

// maskDigits replaces every run of digits by #, so that messages that differ only in numbers are counted together.
func maskDigits(text string) string {
	b := make([]byte, 0, len(text))
	digits := false
	for i := range len(text) {
		c := text[i]
		if c >= '0' && c <= '9' {
			if !digits {
				b = append(b, '#')
			}
			digits = true
			continue
		}
		digits = false
		b = append(b, c)
	}
	return string(b)
}
