package server

import (
	"io"
	"math"
	"sync"
	"sync/atomic"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/tensor"
)

// memory is the budget for what requests hold: bodies, decoded tensors while their queries wait and run, and answers
// until they are written. What would exceed it is refused at once.
type memory struct {
	limit int64
	used  atomic.Int64
	// claims are those of gRPC requests between their decoding and their answer.
	claims sync.Map // of *pb.ModelInferRequest to *claim
}

func newMemory(limit int64) *memory {
	if limit <= 0 {
		limit = math.MaxInt64
	}
	return &memory{limit: limit}
}

var errMemory = oip.Errorf(oip.Unavailable, "", "the server's memory for requests is used up (server.limits.memory)")

// claim is what one request holds of the budget. It is used by one goroutine at a time.
type claim struct {
	of   *memory
	held int64
}

func (m *memory) begin() *claim { return &claim{of: m} }

// take claims n bytes more. It returns an error, and claims nothing, if they are not there.
func (c *claim) take(n int64) error {
	if c.of.used.Add(n) > c.of.limit {
		c.of.used.Add(-n)
		return errMemory
	}
	c.held += n
	return nil
}

// give returns n bytes, at most those that are held.
func (c *claim) give(n int64) {
	n = min(n, c.held)
	c.held -= n
	c.of.used.Add(-n)
}

// release returns everything. A nil claim holds nothing.
func (c *claim) release() {
	if c != nil {
		c.give(c.held)
	}
}

// readAll reads to the end, and claims what it holds before it allocates. hint is how much is expected. It is claimed
// as it comes, since it may be wrong: at first at most a MiB, then at most 16 times what has come. So a body of the
// expected size is not copied up to a MiB, and of larger ones a MiB is, or above 16 MiB a fourth at most.
//
// The byte at offset aligned is at a multiple of eight in memory, where the hint was right: runtimes copy tensors that
// are not.
func (c *claim) readAll(in io.Reader, hint int64, aligned int) ([]byte, error) {
	const first, most, trust = 512, 1 << 20, 16
	size := min(max(hint+1, first), most)
	if err := c.take(size); err != nil {
		return nil, err
	}
	pad := padding(aligned)
	b := make([]byte, pad, int64(pad)+size)[pad:]
	for {
		if len(b) == cap(b) {
			size := 2 * int64(cap(b))
			if hint >= int64(cap(b)) {
				size = min(trust*int64(cap(b)), hint+1)
			}
			if err := c.take(size); err != nil {
				return nil, err
			}
			larger := make([]byte, pad+len(b), int64(pad)+size)[pad:]
			copy(larger, b)
			c.give(int64(cap(b)))
			b = larger
		}
		n, err := in.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF { //nolint:errorlint // readers return it unwrapped
			return b, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// decoded claims what a JSON body may become when it is decoded: at least two bytes of it are an element of at most
// eight.
func (c *claim) decoded(body []byte, headerLength int, bounds *oip.Bounds) error {
	if headerLength != oip.NoBinary {
		body = body[:min(max(headerLength, 0), len(body))]
	}
	return c.take(8 * min(int64(len(body)/2), bounds.Elements))
}

// answer claims the outputs of an answer.
func (c *claim) answer(outputs []tensor.Tensor) error {
	return c.take(tensor.TotalBytes(outputs))
}

// keep holds the claim of a gRPC request until done takes it.
func (m *memory) keep(r *pb.ModelInferRequest, c *claim) { m.claims.Store(r, c) }

// done takes the claim of a gRPC request that is to be answered; an empty one if it has none.
func (m *memory) done(r *pb.ModelInferRequest) *claim {
	if c, ok := m.claims.LoadAndDelete(r); ok {
		return c.(*claim)
	}
	return m.begin()
}
