package server_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/internal/api/listen"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/longtest"
)

// Frames that do no work end their connection, whichever they are, and the address begins its next ones with less. A
// client beside is served all the while.
func TestFloodsOfFramesAreCut(t *testing.T) {
	packed := headers(t)
	begin := func(f *http2.Framer, k int) uint32 { return begin(f, k, packed) }
	s := start(t, server.Config{})
	good, asked := s.client(t), inferMessage()
	for name, flood := range map[string]func(f *http2.Framer, k int) error{
		"resets": resets(packed),
		"resets after data": func(f *http2.Framer, k int) error {
			id := begin(f, k)
			_ = f.WriteData(id, false, make([]byte, 64))
			return f.WriteRSTStream(id, http2.ErrCodeCancel)
		},
		"settings":   func(f *http2.Framer, _ int) error { return f.WriteSettings() },
		"pings":      func(f *http2.Framer, _ int) error { return f.WritePing(true, [8]byte{}) },
		"priorities": func(f *http2.Framer, _ int) error { return f.WritePriority(1, http2.PriorityParam{Weight: 1}) },
		"windows":    func(f *http2.Framer, _ int) error { return f.WriteWindowUpdate(0, 1) },
		"nothing": func(f *http2.Framer, k int) error {
			if k == 0 {
				begin(f, 0)
			}
			return f.WriteData(1, false, nil)
		},
		"continuations": func(f *http2.Framer, k int) error {
			id := uint32(2*(k/framesAtOnce) + 1)
			if k%framesAtOnce == 0 {
				return f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: packed})
			}
			return f.WriteContinuation(id, k%framesAtOnce == framesAtOnce-1, nil) // a ping inside would be an error
		},
		"padding": func(f *http2.Framer, k int) error {
			if k == 0 {
				begin(f, 0)
			}
			return f.WriteDataPadded(1, false, nil, make([]byte, 8))
		},
		"unknown": func(f *http2.Framer, _ int) error { return f.WriteRawFrame(0x77, 0, 0, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			first, calm := floodedBy(t, s.GRPCAddr(), flood)
			if !calm {
				t.Error("the client is not told to calm down")
			}
			again, _ := floodedBy(t, s.GRPCAddr(), flood)
			t.Logf("%d and %d frames are read", first, again)
			if _, err := good.ModelInfer(context.Background(), asked); err != nil {
				t.Error(err)
			}
			isFlood := func(x listen.Count) bool { return x.Reason == "flood" }
			if !slices.ContainsFunc(s.Connections(), isFlood) {
				t.Error("the flood is not counted")
			}
		})
	}
}

// headers are those of a call, packed.
func headers(t *testing.T) []byte {
	t.Helper()
	var packed bytes.Buffer
	e := hpack.NewEncoder(&packed)
	for _, h := range [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":authority", "localhost"},
		{":path", "/inference.GRPCInferenceService/ModelInfer"}, {"content-type", "application/grpc"},
		{"te", "trailers"},
	} {
		if err := e.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}); err != nil {
			t.Fatal(err)
		}
	}
	return packed.Bytes()
}

// begin begins a stream and returns its number.
func begin(f *http2.Framer, k int, packed []byte) uint32 {
	id := uint32(2*k + 1)
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: packed, EndHeaders: true})
	return id
}

// resets begins streams and resets them.
func resets(packed []byte) func(f *http2.Framer, k int) error {
	return func(f *http2.Framer, k int) error { return f.WriteRSTStream(begin(f, k, packed), http2.ErrCodeCancel) }
}

// A client asks 50 times a second beside four others that begin and reset streams as fast as they can, and connect
// again whenever they are cut. It says what the client waits, alone and so, and asserts only that it is answered.
func TestBesideAFlood(t *testing.T) {
	s := start(t, server.Config{})
	good, asked := s.client(t), inferMessage()
	calls := longtest.Of(50, 1500)
	waits := func() (p50, p99 time.Duration) {
		var list []time.Duration
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for range calls {
			<-tick.C
			begun := time.Now()
			if _, err := good.ModelInfer(t.Context(), asked); err != nil {
				t.Fatal(err)
			}
			list = append(list, time.Since(begun))
		}
		slices.Sort(list)
		return list[len(list)/2], list[len(list)*99/100]
	}
	p50, p99 := waits()
	t.Logf("alone: p50 %v, p99 %v of %d calls", p50, p99, calls)
	packed := headers(t)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var sent, cuts atomic.Int64
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				n, calm := floodedBy(t, s.GRPCAddr(), resets(packed))
				sent.Add(int64(n))
				if calm {
					cuts.Add(1)
				}
			}
		})
	}
	p50, p99 = waits()
	stop()
	all.Wait()
	t.Logf("beside a flood: p50 %v, p99 %v of %d calls; %d streams, cut %d times", p50, p99, calls, sent.Load(),
		cuts.Load())
}

// What a client does beside its work never ends its connection, however much it works: a third of these calls are
// cancelled, at any point, on one connection.
func TestClientsThatWorkAreNotCut(t *testing.T) {
	s := start(t, server.Config{})
	c, asked := s.client(t), inferMessage()
	for k := range 6000 {
		ctx, cancel := context.WithCancel(t.Context())
		if k%3 == 0 {
			time.AfterFunc(time.Duration(k%200)*time.Microsecond, cancel)
		}
		_, err := c.ModelInfer(ctx, asked)
		if code := status.Code(err); code != codes.OK && (k%3 != 0 || code != codes.Canceled) {
			t.Fatalf("call %d: %v", k, err)
		}
		cancel()
	}
}

const framesAtOnce = 1000

// floodedBy sends frames until the connection ends, framesAtOnce and a ping so that they are read before the next. It
// returns how many were sent, and whether the server said why.
func floodedBy(t *testing.T, address string, send func(f *http2.Framer, k int) error) (sent int, calm bool) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ended := make(chan bool)
	acked := make(chan struct{}, 1)
	go func() {
		f := http2.NewFramer(io.Discard, c)
		for {
			x, err := f.ReadFrame()
			if err != nil {
				ended <- false
				return
			}
			switch x := x.(type) {
			case *http2.GoAwayFrame:
				if x.ErrCode == http2.ErrCodeEnhanceYourCalm {
					ended <- true
					return
				}
			case *http2.PingFrame:
				if x.IsAck() && x.Data == [8]byte{1} {
					acked <- struct{}{}
				}
			}
		}
	}()
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	f := http2.NewFramer(&out, nil)
	f.AllowIllegalWrites = true
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	for sent < 1<<20 {
		for range framesAtOnce {
			if err := send(f, sent); err != nil {
				t.Fatal(err)
			}
			sent++
		}
		_ = f.WritePing(false, [8]byte{1})
		_, err := c.Write(out.Bytes())
		out.Reset()
		select {
		case calm = <-ended:
			return sent, calm
		case <-acked:
			if err != nil {
				return sent, <-ended
			}
		case <-time.After(30 * time.Second):
			t.Fatal("neither an answer nor an end")
		}
	}
	t.Errorf("%d frames did not end the connection", sent)
	return sent, false
}
