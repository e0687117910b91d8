package listen

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"net"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/credentials"
)

// A connection of HTTP/2 has a credit of frames that do no work for a query: settings, pings, priorities, windows,
// empty pieces, streams that are reset. What carries queries and answers earns it again, so that a client's own
// bookkeeping, which grows with its work, never uses it up. One that has used it up floods, and is told to calm down
// (RFC 9113, sections 7 and 10.5).
const (
	idleFrames    = 4096 // the credit at first, and the most
	idlePerSecond = 512
	earnedByWork  = 2       // by a frame of a query or an answer, and again by each earnedBytes
	earnedBytes   = 8 << 10 // clients widen their windows about as often
	// resetCost takes back what a query's frames have earned: to begin streams and reset them is no work.
	resetCost = 2*earnedByWork + 1
	// messageHead is the length of the head of a message of gRPC, in bytes: a smaller piece earns nothing.
	messageHead = 5
	// strikeLasts is how long an address counts as one that flooded: its next connections begin with a smaller credit.
	strikeLasts   = time.Minute
	mostStrikes   = 6 // 64 frames are left
	mostAddresses = 1 << 14
)

var errFloods = errors.New("the client sends frames that do no work")

// strikes are the addresses that flooded of late.
type strikes struct {
	mu   sync.Mutex
	seen map[string]strike
}

type strike struct {
	n     int
	until time.Time
}

// credit returns that of a new connection.
func (s *strikes) credit(address string, now time.Time) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.seen[address]
	if now.After(x.until) {
		return idleFrames
	}
	return float64(int(idleFrames) >> x.n)
}

func (s *strikes) add(address string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.seen) >= mostAddresses {
		maps.DeleteFunc(s.seen, func(_ string, x strike) bool { return now.After(x.until) })
	}
	if len(s.seen) < mostAddresses {
		s.seen[address] = strike{min(s.seen[address].n+1, mostStrikes), now.Add(strikeLasts)}
	}
}

// Calming returns credentials that have the connections of gRPC counted, behind TLS where there is TLS.
func Calming(c credentials.TransportCredentials) credentials.TransportCredentials {
	return calming{c, &strikes{seen: make(map[string]strike)}}
}

type calming struct {
	credentials.TransportCredentials
	strikes *strikes
}

// ServerHandshake implements credentials.TransportCredentials.
func (c calming) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	address, now := addressOf(raw), time.Now()
	own := &calmConn{
		Conn: conn, end: conn.Close, strikes: c.strikes, address: address, credit: c.strikes.credit(address, now),
		at: now,
		in: frames{skip: len(http2.ClientPreface)},
	}
	if g, ok := raw.(*Conn); ok {
		own.end = func() error { return g.closeFor(flooded) }
		info = secured{info, g}
	}
	return own, info, nil
}

// Clone implements credentials.TransportCredentials.
func (c calming) Clone() credentials.TransportCredentials {
	return calming{c.TransportCredentials.Clone(), c.strikes}
}

// ClientHandshake implements credentials.TransportCredentials.
func (c calming) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these are credentials of servers")
}

// frames finds the heads of frames in a stream of bytes that comes in any pieces.
type frames struct {
	head [9]byte
	have int // bytes of head
	skip int // bytes to go until the next head
}

// each calls f for the head of each frame that is complete with b.
func (x *frames) each(b []byte, f func(kind http2.FrameType, flags http2.Flags, length int)) {
	for len(b) > 0 {
		if x.skip > 0 {
			n := min(x.skip, len(b))
			x.skip -= n
			b = b[n:]
			continue
		}
		n := copy(x.head[x.have:], b)
		x.have += n
		b = b[n:]
		if x.have < len(x.head) {
			return
		}
		x.have, x.skip = 0, int(x.head[0])<<16|int(x.head[1])<<8|int(x.head[2])
		f(http2.FrameType(x.head[3]), http2.Flags(x.head[4]), x.skip)
	}
}

// calmConn is a connection that ends when its client floods.
type calmConn struct {
	net.Conn
	end     func() error
	strikes *strikes
	address string
	in, out frames // each is used by one goroutine: who reads, and who writes

	mu     sync.Mutex
	credit float64
	at     time.Time // when it was counted last
}

// received returns what a frame of the client costs; a negative number is earned.
func received(kind http2.FrameType, flags http2.Flags, length int) float64 {
	switch kind {
	case http2.FrameHeaders:
		return -earnedByWork
	case http2.FrameData:
		switch {
		case flags.Has(http2.FlagDataPadded) || length == 0:
			return 1
		case length < messageHead:
			return 0
		}
		return -earnedByWork
	case http2.FrameRSTStream:
		return resetCost
	}
	return 1
}

// Read implements net.Conn.
func (c *calmConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n == 0 {
		return n, err
	}
	cost := 0.0
	c.in.each(b[:n], func(kind http2.FrameType, flags http2.Flags, length int) {
		cost += received(kind, flags, length)
	})
	if now := time.Now(); c.spend(cost, now) < 0 {
		c.strikes.add(c.address, now)
		_, _ = c.Conn.Write(calmDown)
		_ = c.end()
		return 0, errFloods
	}
	return n, err
}

// Write implements net.Conn.
func (c *calmConn) Write(b []byte) (int, error) {
	earned := 0.0
	c.out.each(b, func(kind http2.FrameType, _ http2.Flags, length int) {
		if kind == http2.FrameData && length > 0 {
			earned += earnedByWork * (1 + float64(length)/earnedBytes)
		}
	})
	if earned > 0 {
		c.spend(-earned, time.Now())
	}
	return c.Conn.Write(b)
}

// spend returns the credit that is left.
func (c *calmConn) spend(cost float64, now time.Time) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.credit = min(c.credit+now.Sub(c.at).Seconds()*idlePerSecond-cost, idleFrames)
	c.at = now
	return c.credit
}

// calmDown is the frame GOAWAY with the error ENHANCE_YOUR_CALM.
var calmDown = func() []byte {
	b := []byte{0, 0, 8, byte(http2.FrameGoAway), 0, 0, 0, 0, 0, 0, 0, 0, 0}
	return binary.BigEndian.AppendUint32(b, uint32(http2.ErrCodeEnhanceYourCalm))
}()
