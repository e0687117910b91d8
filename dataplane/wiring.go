package dataplane

import "github.com/sluice-serving/sluice/tensor"

// Wiring says by which names a stage of an app of several stages takes and gives tensors, and what is known of them.
//
// A query has a name space of tensors: the request's, and the outputs of its stages. A stage sees the request's and
// those of the stages before it on the way to it; of one name it takes that of the latest of them in the order of
// App.Stages.
type Wiring struct {
	// Takes maps inputs of the stage's model to tensors of the query; an input that is not in it takes the tensor of
	// its own name. Where Inputs is not known and Takes has entries, those are all that the stage takes.
	Takes map[string]string
	// Gives maps outputs of the stage's model to the names that they have in the query; an output that is not in it
	// keeps its own.
	Gives map[string]string
	// Inputs and Outputs are what the stage's model takes and gives, by its own names; nil when it is not known. A
	// stage of which neither Inputs nor Takes is known takes all outputs of the stages that feed it, the first stage
	// all tensors of the request.
	Inputs, Outputs []tensor.Spec
}
