package test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/tensor"
)

// used is the processor time that a process has taken, as the system counts it, in hundredths of a second.
func used(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

// memory is what a field of a process's status says, in MiB: VmRSS is what it has, VmHWM the most that it had.
func memory(t *testing.T, pid int, field string) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), field+":")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return float64(kib) / 1024
}

// firstTwo is a model that takes rows of numbers and answers with the first two of each: nearly all that a query costs
// is the server's.
func firstTwo(numbers int) *onnxmodel.Graph {
	return onnxmodel.NewGraph("first").Input("x", onnxmodel.Float32, onnxmodel.Symbolic, int64(numbers)).
		InitializerInt64("which", []int64{0, 1}, 2).
		Node("Gather", []string{"x", "which"}, []string{"y"}, onnxmodel.AttrInt("axis", 1)).
		Output("y", onnxmodel.Float32, onnxmodel.Symbolic, 2)
}

// row is a payload: one row of numbers as a model may give them, from -1 to 1 with all of their digits.
func row(numbers int) tensor.Tensor {
	data := make([]byte, 4*numbers)
	for k := range numbers {
		binary.LittleEndian.PutUint32(data[4*k:], math.Float32bits(float32(math.Sin(float64(k+1)))))
	}
	return tensor.Tensor{Name: "x", DType: tensor.FP32, Shape: []int64{1, int64(numbers)}, Data: data}
}

// overHTTP is a call of a model, which fails unless the answer begins with the first number of the payload.
func overHTTP(t *testing.T, c *http.Client, url string, x tensor.Tensor, inBinary bool) func() error {
	t.Helper()
	body, length, err := oip.EncodeRESTRequest(&oip.RESTRequest{Inputs: []tensor.Tensor{x}}, inBinary)
	if err != nil {
		t.Fatal(err)
	}
	return func() error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return err
		}
		if length != oip.NoBinary {
			r.Header.Set(oip.HeaderLength, strconv.Itoa(length))
		}
		a, err := c.Do(r)
		if err != nil {
			return err
		}
		defer func() { _ = a.Body.Close() }()
		text, err := io.ReadAll(a.Body)
		if err == nil && (a.StatusCode != http.StatusOK || !strings.Contains(string(text), `"data":[0.84147096,`)) {
			err = fmt.Errorf("%s: %.200s", a.Status, text)
		}
		return err
	}
}

// overGRPC is the same call over gRPC.
func overGRPC(ctx context.Context, c pb.GRPCInferenceServiceClient, model string, x tensor.Tensor) func() error {
	r := oip.EncodeRequest(model, "", "", []tensor.Tensor{x}, nil)
	return func() error {
		a, err := c.ModelInfer(ctx, r)
		if err == nil && (len(a.RawOutputContents) != 1 || !bytes.Equal(a.RawOutputContents[0], x.Data[:8])) {
			err = fmt.Errorf("the answer is %v", a)
		}
		return err
	}
}

// cost has callers send queries one after the other until the server has used some processor time, and at least so
// many. It returns the processor time of one, in ms, and the most memory that the server had meanwhile, in MiB.
func cost(t *testing.T, pid, callers, fewest int, most time.Duration, call func() error) (ms, mib float64) {
	t.Helper()
	if err := call(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0o200); err != nil {
		t.Fatal(err) // VmHWM begins anew
	}
	var n atomic.Int64
	var wg sync.WaitGroup
	begun := used(t, pid)
	for range callers {
		wg.Go(func() {
			for {
				if k := n.Add(1); k > int64(fewest) && (most == 0 || k%64 == 0 && used(t, pid)-begun > most) {
					n.Add(-1)
					return
				}
				if err := call(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return (used(t, pid) - begun).Seconds() * 1000 / float64(n.Load()), memory(t, pid, "VmHWM")
}

// servedAgain is a server of a repository that an earlier one has measured, so that its memory is that of serving.
func servedAgain(t *testing.T, root string) *server {
	t.Helper()
	args := []string{root, "--profile-first", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--admin", "off"}
	first := serve(t, args...)
	_ = first.Process.Kill()
	_ = first.Wait()
	return serve(t, args...)
}

// TestSizing measures what a query costs the server by the size of its payload, and what models and connections take in
// memory. The long form prints the tables of docs/sizing.md. The short one sends a few queries of each kind.
func TestSizing(t *testing.T) {
	needsONNX(t)
	fewest, most := 20, longtest.Of(0, 2*time.Second)
	const callers = 16
	t.Logf("%d callers; processor time of a query in ms = cores for 1,000 queries/s; most memory in MiB", callers)
	t.Logf("%10s %18s %18s %18s", "payload", "HTTP, JSON", "HTTP, binary", "gRPC")
	for _, size := range []int{64, 1 << 10, 100 << 10, 1 << 20} {
		root := t.TempDir()
		if err := firstTwo(size / 4).Write(filepath.Join(root, "first", "1", "model.onnx")); err != nil {
			t.Fatal(err)
		}
		s, x := servedAgain(t, root), row(size/4)
		web := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers, DisableCompression: true}}
		conn, err := grpc.NewClient(s.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		client, url := pb.NewGRPCInferenceServiceClient(conn), s.url()+"/v2/models/first/infer"
		line := fmt.Sprintf("%10d", size)
		for _, call := range []func() error{
			overHTTP(t, web, url, x, false), overHTTP(t, web, url, x, true), overGRPC(t.Context(), client, "first", x),
		} {
			ms, mib := cost(t, s.Process.Pid, callers, fewest, most, call)
			line += fmt.Sprintf(" %9.3f %4.0f MiB", ms, mib)
		}
		t.Log(line)
		web.CloseIdleConnections()
		_ = conn.Close()
		_ = s.Process.Kill()
	}
}

// TestSizingOfMemory measures what models and connections take while nothing is asked.
func TestSizingOfMemory(t *testing.T) {
	needsONNX(t)
	count, models := longtest.Of(20, 200), longtest.Of(3, 101)
	start := func(models int) *server {
		root := t.TempDir()
		for k := range models {
			if err := firstTwo(16).Write(filepath.Join(root, fmt.Sprint("m", k), "1", "model.onnx")); err != nil {
				t.Fatal(err)
			}
		}
		return servedAgain(t, root)
	}
	s := start(models)
	many := memory(t, s.Process.Pid, "VmRSS")
	_ = s.Process.Kill()
	s = start(1)
	one := memory(t, s.Process.Pid, "VmRSS")
	t.Logf("a server with a small model %.0f MiB, each further model %.2f MiB", one, (many-one)/float64(models-1))
	x := row(16)
	for _, kind := range []string{"HTTP", "gRPC"} {
		before := memory(t, s.Process.Pid, "VmRSS")
		for range count {
			if kind == "HTTP" {
				web := &http.Client{Transport: &http.Transport{}}
				defer web.CloseIdleConnections()
				if err := overHTTP(t, web, s.url()+"/v2/models/m0/infer", x, true)(); err != nil {
					t.Fatal(err)
				}
				continue
			}
			c, err := grpc.NewClient(s.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			if err := overGRPC(t.Context(), pb.NewGRPCInferenceServiceClient(c), "m0", x)(); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("an idle connection over %s that has asked once: %.1f KiB", kind,
			(memory(t, s.Process.Pid, "VmRSS")-before)*1024/float64(count))
	}
}
