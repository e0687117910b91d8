package proteus

// figure5 is §6.3: periods of high demand that begin and end at once.
func figure5(run *runner) error {
	w, err := run.environment(setup{})
	if err != nil {
		return err
	}
	return run.endToEnd("5", w, run.trace(burstyTrace))
}
