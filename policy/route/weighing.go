package route

import "github.com/sluice-serving/sluice/serving"

// Watched is a rule that says what it compared when it gave a batch to an instance. Whoever explains decisions asks for
// it; engines do not need it.
type Watched interface {
	// Watch has f called with everything that the rule compares from now on, while it decides; nil for nobody. f must
	// not keep what it is given.
	Watch(f func(*Weighing))
}

// Weighing is what a rule compared when it gave a batch to an instance.
type Weighing struct {
	Instance serving.InstanceID // that was given the batch
	// Choices are batches that could have begun on machines that were free, the one that was taken first, then by
	// their scores. More is how many others there were.
	Choices []Choice
	More    int
	// Late is set for a batch of queries that can be in time nowhere. It takes time that nothing else needs, and its
	// choice has no gain.
	Late bool
	// Overlaps is set for a batch that begins beside those that run on a busy machine. Its price counts several times.
	Overlaps bool
}

// Choice is a batch that could begin. Gains and prices are in answers of the best variant in time, by the weights of
// their apps.
type Choice struct {
	Stage   serving.StageID
	Variant serving.VariantID
	Device  serving.DeviceTypeID
	Queries int
	Items   int
	Seconds float64 // that the batch is believed to take
	Gain    float64 // what it brings, less what its queries are worth if they are left, its machine time, and Blocks
	Price   float64 // of a second of the machine
	Blocks  float64 // what is lost of more urgent queries that find no machine meanwhile
	Score   float64 // by which batches of different lengths are compared: the highest begins
}
