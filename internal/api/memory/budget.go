// Package memory bounds what the requests of a server hold.
package memory

import (
	"errors"
	"io"
	"math"
	"sync"

	"github.com/sluice-serving/sluice/internal/api/access"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/tensor"
)

// Alignment is what any type of element is aligned to, in bytes.
const Alignment = 8

// Padding is what must stand before an offset in memory that is aligned, for the offset to be.
func Padding(offset int) int { return (Alignment - offset%Alignment) % Alignment }

// Budget is the memory for what requests hold: bodies, decoded tensors while their queries wait and run, and answers
// until they are written. What would exceed it is refused at once.
type Budget struct {
	room *access.Room
	// claims are those of gRPC requests between their decoding and their answer.
	claims sync.Map // of *pb.ModelInferRequest to *Claim
}

// New returns a budget of a number of bytes, which tenants of these weights share; 0 is without limit.
func New(limit int64, weights []float64) *Budget {
	if limit <= 0 {
		limit = math.MaxInt64
	}
	return &Budget{room: access.NewRoom(limit, weights)}
}

// ErrUsedUp refuses what is not there, and ErrPartUsedUp what is kept for other tenants.
var (
	ErrUsedUp = oip.Errorf(oip.Unavailable, "", "the server's memory for requests is used up (server.limits.memory)")

	ErrPartUsedUp = oip.Errorf(oip.Unavailable, "", "little of the server's memory for requests is left, and this "+
		"tenant holds more than its part (server.limits.memory)")
)

// refusal is the error of a room in the protocol's words; nil for nil.
func refusal(err error) error {
	switch {
	case errors.Is(err, access.ErrFull):
		return ErrUsedUp
	case err != nil:
		return ErrPartUsedUp
	}
	return nil
}

// Claim is what one request holds of the budget. It is used by one goroutine at a time.
type Claim struct {
	of     *Budget
	tenant int
	held   int64
}

// Used is what requests hold, in bytes.
func (m *Budget) Used() int64 { return m.room.Used() }

// Begin returns a claim of nothing, of a tenant or of access.Unknown.
func (m *Budget) Begin(tenant int) *Claim { return &Claim{of: m, tenant: tenant} }

// By says whose a claim is that was nobody's. It returns an error if the tenant may not hold it; then it is still
// nobody's.
func (c *Claim) By(tenant int) error {
	if !c.of.room.Hold(tenant, c.held) {
		return ErrPartUsedUp
	}
	c.tenant = tenant
	return nil
}

// Take claims n bytes more. It returns an error, and claims nothing, if they are not there.
func (c *Claim) Take(n int64) error {
	if err := c.of.room.Take(c.tenant, n); err != nil {
		return refusal(err)
	}
	c.held += n
	return nil
}

// Give returns n bytes, at most those that are held.
func (c *Claim) Give(n int64) {
	n = min(n, c.held)
	c.held -= n
	c.of.room.Give(c.tenant, n)
}

// Release returns everything. A nil claim holds nothing.
func (c *Claim) Release() {
	if c != nil {
		c.Give(c.held)
	}
}

// ReadAll reads to the end, and claims what it holds before it allocates. hint is how much is expected. It is claimed
// as it comes, since it may be wrong: at first at most a MiB, then at most 16 times what has come. So a body of the
// expected size is not copied up to a MiB, and of larger ones a MiB is, or above 16 MiB a fourth at most.
//
// The byte at offset aligned is at a multiple of eight in memory, where the hint was right: runtimes copy tensors that
// are not.
func (c *Claim) ReadAll(in io.Reader, hint int64, aligned int) ([]byte, error) {
	const first, most, trust = 512, 1 << 20, 16
	size := min(max(hint+1, first), most)
	if err := c.Take(size); err != nil {
		return nil, err
	}
	pad := Padding(aligned)
	b := make([]byte, pad, int64(pad)+size)[pad:]
	for {
		if len(b) == cap(b) {
			size := 2 * int64(cap(b))
			if hint >= int64(cap(b)) {
				size = min(trust*int64(cap(b)), hint+1)
			}
			if err := c.Take(size); err != nil {
				return nil, err
			}
			larger := make([]byte, pad+len(b), int64(pad)+size)[pad:]
			copy(larger, b)
			c.Give(int64(cap(b)))
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

// Decoded claims what a JSON body may become when it is decoded: at least two bytes of it are an element of at most
// eight.
func (c *Claim) Decoded(body []byte, headerLength int, bounds *oip.Bounds) error {
	if headerLength != oip.NoBinary {
		body = body[:min(max(headerLength, 0), len(body))]
	}
	return c.Take(8 * min(int64(len(body)/2), bounds.Elements))
}

// Answer claims the outputs of an answer.
func (c *Claim) Answer(outputs []tensor.Tensor) error {
	return c.Take(tensor.TotalBytes(outputs))
}

// Keep holds the claim of a gRPC request until Done takes it.
func (m *Budget) Keep(r *pb.ModelInferRequest, c *Claim) { m.claims.Store(r, c) }

// Done takes the claim of a gRPC request that is to be answered; an empty one if it has none.
func (m *Budget) Done(r *pb.ModelInferRequest) *Claim {
	if c, ok := m.claims.LoadAndDelete(r); ok {
		return c.(*Claim)
	}
	return m.Begin(access.Unknown)
}
