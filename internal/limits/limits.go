// Package limits says what clients may ask for at most, and how long things may take, where a configuration says
// nothing. The front ends, the data plane and the configuration take each number from here, so that they mean the same.
// docs/configuration.md has them in words.
package limits

import "time"

// Of what clients send and keep.
const (
	RequestBytes   = 64 << 20  // of a request, after decompression
	HeaderBytes    = 1 << 20   // of all headers of a request
	Connections    = 1024      // open at once, for each protocol
	Streams        = 4096      // calls at once on one gRPC connection
	Items          = 1024      // of one request
	OutputBytes    = 64 << 20  // of one query's outputs
	HeadBytes      = 1 << 20   // of the JSON of a request, without the data of its tensors
	Tensors        = 256       // inputs of one request, and outputs
	Parameters     = 256       // of one request, and of each of its tensors
	Elements       = 8 << 20   // of one request's tensors that come as JSON or in typed contents
	UnpackRatio    = 100       // of a compressed request's size, once it unpacks to more than a MiB
	Rows           = 1024      // of a tensor that a stage sends on for one query
	StateBytes     = 1 << 20   // that a stateful stage keeps of one stream
	AllStatesBytes = 256 << 20 // that stateful stages keep of all streams
	ModelBytes     = 2 << 30   // of a model file that is deployed
	Models         = 2000      // of a model repository that a server has at once
)

// Of what is planned for, in queries/s.
const (
	Demand       = 1e8 // of an app; with any head-room it is a rate that can be simulated (workload.MaxRate)
	SequenceRate = 1e5 // of one sequence that announces it
	Announced    = 1e5 // of all sequences of an app, and of a tenant
)

// Of waiting.
const (
	ReadTimeout   = 30 * time.Second // for a request to arrive
	WriteTimeout  = 30 * time.Second // for a client to read the next piece of an answer
	StreamIdle    = 10 * time.Minute // of a gRPC stream without a message
	ConnectionAge = time.Hour        // of a gRPC connection
	IdleTimeout   = 2 * time.Minute  // of a silent connection
	NotReady      = 5 * time.Second  // for load balancers to notice that a server is about to stop
	DrainTimeout  = 30 * time.Second // for accepted queries to finish once a server is asked to stop
)
