package oip

import "github.com/sluice-serving/sluice/internal/limits"

// Bounds of a message, beside the size limit of the transport. They hold while a message is scanned, before anything is
// made of it: a few bytes of an entry become hundreds once they are decoded.
const (
	// MaxTensors is the most inputs or outputs of one message, unless Bounds say otherwise.
	MaxTensors = limits.Tensors
	// MaxRank is the most dimensions of a tensor.
	MaxRank = 32
	// MaxElements is the most elements of a tensor.
	MaxElements = 1 << 31
)

// Bounds are what a message may hold. A zero means the one of package internal/limits. Errors name the key of the
// configuration in which each can be raised.
type Bounds struct {
	// Head is the largest JSON of a message over HTTP, in bytes, without the data of its tensors.
	Head int
	// Tensors is the most inputs of a message, and the most outputs.
	Tensors int
	// Parameters is the most parameters of a message, and of each of its tensors.
	Parameters int
	// Elements is the most elements of all tensors of a message that come one by one: as JSON, or in typed contents.
	// Raw blocks do not count, since they are not decoded.
	Elements int64
}

// WithDefaults returns the bounds with those of package limits for zeros.
func (b Bounds) WithDefaults() Bounds {
	if b.Head <= 0 {
		b.Head = limits.HeadBytes
	}
	if b.Tensors <= 0 {
		b.Tensors = limits.Tensors
	}
	if b.Parameters <= 0 {
		b.Parameters = limits.Parameters
	}
	if b.Elements <= 0 {
		b.Elements = limits.Elements
	}
	return b
}

func (b *Bounds) errHead() error {
	return Errorf(TooLarge, "", "the JSON has more than %d bytes beside the data of its tensors, the limit of this "+
		"server (server.limits.json)", b.Head)
}

func (b *Bounds) errTensors() error {
	return invalid("", "a list has more than %d tensors, the limit of this server (server.limits.tensors)", b.Tensors)
}

func (b *Bounds) errParameters() error {
	return invalid("parameters", "are more than %d, the limit of this server (server.limits.parameters)", b.Parameters)
}

func errRank() error { return invalid("shape", "a tensor has more than %d dimensions", MaxRank) }

func (b *Bounds) errElements() error {
	return Errorf(TooLarge, "", "the tensors have more than %d elements, the limit of this server "+
		"(server.limits.elements): send them as binary data, which does not count", b.Elements)
}
