package picker_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/health"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-serving/sluice/operator/internal/cluster"
	"github.com/sluice-serving/sluice/operator/picker"
)

// servesVariable has this test's program be a picker and nothing else, for BenchmarkServer.
const servesVariable = "SLUICE_PICKER_SERVES"

// TestServes is a picker in a process of its own, until its standard input ends.
func TestServes(t *testing.T) {
	if os.Getenv(servesVariable) == "" {
		t.Skip("it is run by BenchmarkServer")
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	picker.Tune()
	s := &picker.Server{}
	s.Use(table())
	g := picker.NewGRPC(s, health.NewServer())
	go func() { _ = g.Serve(l) }()
	fmt.Println("serving", l.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
	g.Stop()
}

// BenchmarkServer is a gateway that asks a picker in another process, each time on a stream of its own, as gateways do.
// It reports the processor time of the picker alone, how long an answer takes from the instant at which the question
// was written, and from that at which it was to be written: a gateway that gets no processor asks late. The gateway
// writes frames itself: it needs little of the machine.
func BenchmarkServer(b *testing.B) {
	for _, rate := range []int{2000, 5000, 10000, 20000} {
		b.Run(fmt.Sprintf("%d_per_s", rate), func(b *testing.B) {
			address, pid := serve(b)
			const connections = 4
			var asks []*asker
			for range connections {
				asks = append(asks, newAsker(b, address))
			}
			// Connections, pools and code are warm before it counts.
			ask(asks, 2000, rate)
			for _, a := range asks {
				a.took = nil
			}
			before, began := processTime(b, pid), time.Now()
			b.ResetTimer()
			ask(asks, b.N, rate)
			b.StopTimer()
			used, passed := processTime(b, pid)-before, time.Since(began)
			var took []answer
			for _, a := range asks {
				took = append(took, a.took...)
				if a.err != nil {
					b.Fatal(a.err)
				}
			}
			since := func(of func(answer) time.Duration, q float64) float64 {
				slices.SortFunc(took, func(x, y answer) int { return cmp.Compare(of(x), of(y)) })
				return float64(of(took[min(int(float64(len(took))*q), len(took)-1)]).Microseconds())
			}
			if len(took) != b.N {
				b.Fatalf("%d answers of %d", len(took), b.N)
			}
			b.ReportMetric(since(answer.sinceSent, 0.5), "p50-us")
			b.ReportMetric(since(answer.sinceSent, 0.99), "p99-us")
			b.ReportMetric(since(answer.sinceDue, 0.99), "p99-due-us")
			b.ReportMetric(float64(used.Microseconds())/float64(b.N), "server-cpu-us/pick")
			b.ReportMetric(float64(b.N)/passed.Seconds(), "picks/s")
		})
	}
}

// ask sends n requests at a rate over all connections and waits for the answers.
func ask(asks []*asker, n, rate int) {
	var all sync.WaitGroup
	began := time.Now()
	for k, a := range asks {
		all.Go(func() { a.run(n/len(asks)+min(1, max(0, n%len(asks)-k)), rate/len(asks), began) })
	}
	all.Wait()
}

// serve starts a picker.
func serve(b *testing.B) (address string, pid int) {
	b.Helper()
	args := []string{"-test.run=^TestServes$", "-test.v"}
	if folder := os.Getenv("SLUICE_KEEP"); folder != "" {
		args = append(args, "-test.cpuprofile="+filepath.Join(folder, "picker.pprof"))
	}
	cmd := exec.CommandContext(context.Background(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), servesVariable+"=yes")
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cluster.StartTied(cmd); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if at, ok := strings.CutPrefix(lines.Text(), "serving "); ok {
			return at, cmd.Process.Pid
		}
	}
	b.Fatalf("the picker did not start: %v", lines.Err())
	return "", 0
}

// processTime is the processor time of a process, in nanoseconds as its scheduler counts them, over all threads.
func processTime(b *testing.B, pid int) (sum time.Duration) {
	b.Helper()
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		b.Fatal(err)
	}
	for _, t := range tasks {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", pid, t.Name()))
		if err != nil {
			continue // the thread has ended
		}
		ran, _, _ := strings.Cut(string(text), " ")
		ns, err := strconv.ParseInt(ran, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(ns)
	}
	return sum
}

// answer is one that came, or is to come.
type answer struct{ due, sent, came time.Time }

func (a answer) sinceSent() time.Duration { return a.came.Sub(a.sent) }
func (a answer) sinceDue() time.Duration  { return a.came.Sub(a.due) }

// asker asks over one connection. Each pick is a stream: headers and a message to the picker, its answer, the end of
// both sides.
type asker struct {
	conn    net.Conn
	out     *bufio.Writer
	frames  *http2.Framer
	block   []byte // headers of a call, in literals that need no state
	message []byte

	mu    sync.Mutex // of what follows, and of out
	due   map[uint32]answer
	next  uint32
	took  []answer
	err   error
	ended chan struct{} // a stream has ended
}

func newAsker(b *testing.B, address string) *asker {
	b.Helper()
	conn, err := new(net.Dialer).DialContext(b.Context(), "tcp", address)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	a := &asker{conn: conn, out: bufio.NewWriterSize(conn, 64<<10), due: make(map[uint32]answer), next: 1,
		ended: make(chan struct{}, 1<<20)}
	a.frames = http2.NewFramer(a.out, bufio.NewReaderSize(conn, 64<<10))
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	e.SetMaxDynamicTableSize(0) // the same bytes in every stream
	for _, f := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":authority", address},
		{":path", "/envoy.service.ext_proc.v3.ExternalProcessor/Process"}, {"content-type", "application/grpc"},
		{"te", "trailers"}} {
		if err := e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1], Sensitive: true}); err != nil {
			b.Fatal(err)
		}
	}
	a.block = block.Bytes()
	text, err := proto.Marshal(post("/v2/models/digits/infer"))
	if err != nil {
		b.Fatal(err)
	}
	a.message = append(make([]byte, 5), text...)
	binary.BigEndian.PutUint32(a.message[1:], uint32(len(text)))
	if _, err := a.out.WriteString(http2.ClientPreface); err != nil {
		b.Fatal(err)
	}
	if err := a.frames.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20}); err != nil {
		b.Fatal(err)
	}
	if err := a.frames.WriteWindowUpdate(0, 1<<30); err != nil {
		b.Fatal(err)
	}
	if err := a.out.Flush(); err != nil {
		b.Fatal(err)
	}
	go a.read()
	return a
}

// run asks n times at a rate and waits for the answers.
func (a *asker) run(n, rate int, began time.Time) {
	sent := 0
	for sent < n {
		now := time.Now()
		until := min(n, int(now.Sub(began).Seconds()*float64(rate))+1)
		a.mu.Lock()
		for ; sent < until; sent++ {
			a.due[a.next] = answer{due: began.Add(time.Duration(sent) * time.Second / time.Duration(rate)),
				sent: time.Now()}
			err := a.frames.WriteHeaders(http2.HeadersFrameParam{StreamID: a.next, BlockFragment: a.block,
				EndHeaders: true})
			if err == nil {
				err = a.frames.WriteData(a.next, false, a.message)
			}
			if err != nil {
				a.fail(err)
			}
			a.next += 2
		}
		if err := a.out.Flush(); err != nil {
			a.fail(err)
		}
		failed := a.err != nil
		a.mu.Unlock()
		if failed {
			return
		}
		if sent < n {
			time.Sleep(time.Until(began.Add(time.Duration(sent) * time.Second / time.Duration(rate))))
		}
	}
	for range n {
		if _, ok := <-a.ended; !ok {
			return
		}
	}
}

// fail keeps the first error. The caller holds mu.
func (a *asker) fail(err error) {
	if a.err == nil {
		a.err = err // nil for none
	}
}

// read takes the picker's frames.
func (a *asker) read() {
	defer close(a.ended)
	for {
		f, err := a.frames.ReadFrame()
		a.mu.Lock()
		if err != nil {
			a.fail(err)
			a.mu.Unlock()
			return
		}
		flush := false
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				a.fail(a.frames.WriteSettingsAck())
				flush = true
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				a.fail(a.frames.WritePing(true, f.Data))
				flush = true
			}
		case *http2.DataFrame:
			if x, ok := a.due[f.StreamID]; ok {
				delete(a.due, f.StreamID)
				x.came = time.Now()
				a.took = append(a.took, x)
				a.fail(a.frames.WriteData(f.StreamID, true, nil))
				flush = true
			}
		case *http2.HeadersFrame:
			if f.StreamEnded() {
				a.ended <- struct{}{}
			}
		case *http2.RSTStreamFrame:
			a.fail(fmt.Errorf("stream %d is reset: %v", f.StreamID, f.ErrCode))
		case *http2.GoAwayFrame:
			a.fail(fmt.Errorf("the picker goes away: %v %s", f.ErrCode, f.DebugData()))
		}
		if flush {
			a.fail(a.out.Flush())
		}
		a.mu.Unlock()
	}
}
