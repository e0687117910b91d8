package bound

// Options are the resolution of a bound. Finer bounds are tighter and take more time.
type Options struct {
	// Foresight makes the bound that of rules which know every arrival in advance: batches hold only queries that can
	// meet, and the stages of a graph share the time of a query (doc.go). It is tighter, and takes a hundred times as
	// long.
	Foresight bool
	// Windows is the most windows that time is divided into; 0 means 24, and 10,000 by foresight. More windows are
	// tighter if the load changes.
	Windows int
	// Classes is the most sizes that the queries of an app are divided into; 0 means 12.
	Classes int
	// Terms is how many terms the program may have; 0 means 500,000. A larger one is made coarser: with half as many
	// windows, and then with half as many sizes. It is a bound all the same.
	Terms int

	alike bool // by foresight: queries are not told apart by how many come at about the same time
	cuts  int  // by foresight: into so many steps time is divided between stages; 0 means mostSteps
}

func (o Options) windows() int {
	switch {
	case o.Windows > 0:
		return o.Windows
	case o.Foresight:
		return 10_000
	}
	return fewWindows
}

const (
	// fewWindows is how many windows are fine enough for most loads.
	fewWindows = 24
	// mostSteps and leastSteps are into how many steps foresight divides time between stages.
	mostSteps, leastSteps = 24, 6
	// windowsPerDeadline is how many windows the longest time to a deadline has by foresight.
	windowsPerDeadline = 4
)

func (o Options) terms() int {
	if o.Terms <= 0 {
		return 500_000
	}
	return o.Terms
}

func (o Options) classes() int {
	if o.Classes <= 0 {
		return 12
	}
	return o.Classes
}

func (o Options) steps() int {
	if o.cuts <= 0 {
		return mostSteps
	}
	return o.cuts
}

func (o Options) perDeadline() int {
	if o.Foresight {
		return windowsPerDeadline
	}
	return 1 // windows shorter than the time to a deadline tighten the fluid bound little and take much time
}

// coarser returns options that make a smaller program than one with so many windows; ok is false where there are none.
func (o Options) coarser(windows int) (_ Options, ok bool) {
	switch {
	case windows > fewWindows && o.Foresight:
		o.Windows = max((windows+1)/2, fewWindows)
	case o.Foresight && !o.alike:
		o.alike = true
	case o.Foresight && o.steps() > leastSteps:
		o.cuts = o.steps() / 2
	case windows > 1:
		o.Windows = (windows + 1) / 2
	case o.classes() > 1:
		o.Classes = (o.classes() + 1) / 2
	default:
		return o, false
	}
	return o, true
}
