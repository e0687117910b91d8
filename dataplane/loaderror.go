package dataplane

// LoadError is a load that failed by the model's fault, as far as is known: one that is not there, or is broken. It
// reaches Config.Trouble.
type LoadError struct {
	Variant string // by name
	Err     error
}

// Error implements error.
func (e *LoadError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *LoadError) Unwrap() error { return e.Err }
