package proteus

// figure5 is §6.3: periods of high demand that begin and end at once.
func figure5(l *lab) error {
	w, err := l.world(setup{})
	if err != nil {
		return err
	}
	return l.endToEnd("5", w, l.trace(burstyTrace))
}
