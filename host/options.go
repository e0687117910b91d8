package host

// Options say who hears what a person might want to know while something takes its time. No two calls of them are made
// at once by one call of this package; two calls of this package at once may each make theirs.
type Options struct {
	// Notice is told, in a sentence without a line feed, of something that is worth knowing and no error, such as that
	// models are about to be measured. Nil tells nobody.
	Notice func(sentence string)
	// Progress is told which share, in [0, 1], of something is done, and what it is. It may be called often and has to
	// return soon. Nil tells nobody.
	Progress func(share float64, doing string)
}

// complete returns the options with something to call in every place.
func (o Options) complete() Options {
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	if o.Progress == nil {
		o.Progress = func(float64, string) {}
	}
	return o
}
