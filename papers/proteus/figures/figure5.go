package proteus

// figure5 runs a trace with bursts: periods of high demand that begin and end suddenly (§6.3).
func figure5(run *runner) error {
	w, err := run.environment(setup{})
	if err != nil {
		return err
	}
	return run.endToEnd("5", w, run.trace(burstyTrace))
}
