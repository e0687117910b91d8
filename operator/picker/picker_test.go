package picker_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"sort"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	modes "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/operator/picker"
)

// table has app digits on two workers, busy's on one that may have one request, and one dispatcher.
func table() *picker.Table {
	at := func(n int) *picker.Endpoint { return &picker.Endpoint{Address: fmt.Sprintf("10.0.0.%d", n)} }
	return &picker.Table{Most: 1000, Apps: map[string][]picker.Choice{
		"digits": {{at(1), "digits.big", 0.75}, {at(2), "digits.big", 0.25}},
	}, Dispatchers: []picker.Choice{{Endpoint: at(9), Share: 1}}}
}

// gateway is a client of external processing.
type gateway struct {
	t      testing.TB
	client extproc.ExternalProcessorClient
	server *picker.Server
}

func start(t testing.TB, table *picker.Table) *gateway {
	t.Helper()
	s := &picker.Server{}
	if table != nil {
		s.Use(table)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := picker.NewGRPC(s, health.NewServer())
	go func() { _ = g.Serve(l) }()
	t.Cleanup(g.Stop)
	c, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &gateway{t, extproc.NewExternalProcessorClient(c), s}
}

// exchange is one request's stream.
type exchange struct {
	t      testing.TB
	stream extproc.ExternalProcessor_ProcessClient
}

func (g *gateway) request() *exchange {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	g.t.Cleanup(cancel)
	s, err := g.client.Process(ctx)
	if err != nil {
		g.t.Fatal(err)
	}
	return &exchange{g.t, s}
}

func (x *exchange) send(in *extproc.ProcessingRequest) {
	x.t.Helper()
	if err := x.stream.Send(in); err != nil {
		x.t.Fatal(err)
	}
}

func (x *exchange) recv() *extproc.ProcessingResponse {
	x.t.Helper()
	out, err := x.stream.Recv()
	if err != nil {
		x.t.Fatal(err)
	}
	return out
}

func headers(end bool, list ...string) *extproc.ProcessingRequest {
	h := &core.HeaderMap{}
	for i := 0; i < len(list); i += 2 {
		h.Headers = append(h.Headers, &core.HeaderValue{Key: list[i], RawValue: []byte(list[i+1])})
	}
	return &extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_RequestHeaders{
		RequestHeaders: &extproc.HttpHeaders{Headers: h, EndOfStream: end}}}
}

func post(path string) *extproc.ProcessingRequest {
	return headers(false, ":method", "POST", ":path", path, "content-type", "application/json")
}

func part(end bool, data []byte) *extproc.ProcessingRequest {
	return &extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_RequestBody{
		RequestBody: &extproc.HttpBody{Body: data, EndOfStream: end}}}
}

// destination returns the header and the metadata of an answer, which must be equal, and the other headers that are
// set.
func destination(t testing.TB, out *extproc.ProcessingResponse) (string, map[string]string) {
	t.Helper()
	if i := out.GetImmediateResponse(); i != nil {
		return fmt.Sprint(int(i.GetStatus().GetCode())), nil
	}
	set := map[string]string{}
	for _, h := range out.GetRequestHeaders().GetResponse().GetHeaderMutation().GetSetHeaders() {
		set[h.GetHeader().GetKey()] = string(h.GetHeader().GetRawValue())
	}
	lb := out.GetDynamicMetadata().GetFields()["envoy.lb"].GetStructValue()
	meta := lb.GetFields()["x-gateway-destination-endpoint"]
	if value := set["x-gateway-destination-endpoint"]; value == "" || value != meta.GetStringValue() {
		t.Fatalf("the header says %q, the metadata %q", value, meta.GetStringValue())
	}
	return set["x-gateway-destination-endpoint"], set
}

func TestRouting(t *testing.T) {
	g := start(t, table())
	for _, c := range []struct {
		name       string
		in         *extproc.ProcessingRequest
		want, path string // want: the addresses of which one comes first
	}{
		{"an app on workers", post("/v2/models/digits/infer"), "10.0.0.1:8000 10.0.0.2:8000",
			"/v2/models/digits.big/infer"},
		{"with a query", post("/v2/models/digits/infer?x=1"), "10.0.0.1:8000 10.0.0.2:8000",
			"/v2/models/digits.big/infer?x=1"},
		{"an app that no worker has", post("/v2/models/graph/infer"), "10.0.0.9:8000", ""},
		{"a version", post("/v2/models/digits/versions/2/infer"), "10.0.0.9:8000", ""},
		{"metadata", headers(true, ":method", "GET", ":path", "/v2/models/digits"), "10.0.0.9:8000", ""},
		{"a name in another encoding", post("/v2/models/%64igits/infer"), "10.0.0.9:8000", ""},
		{"another call of gRPC", headers(false, ":method", "POST", ":path",
			"/inference.GRPCInferenceService/ModelStreamInfer", "content-type", "application/grpc"),
			"10.0.0.9:8001", ""},
	} {
		x := g.request()
		x.send(c.in)
		got, set := destination(t, x.recv())
		first, _, _ := strings.Cut(got, ",")
		if !slices.Contains(strings.Fields(c.want), first) || set[":path"] != c.path {
			t.Errorf("%s: %q with path %q, want one of %q with %q", c.name, got, set[":path"], c.want, c.path)
		}
	}
}

// Requests that have not ended count: the shares are kept, and the endpoint that served is the one that counts.
func TestSharesAndFeedback(t *testing.T) {
	tab := table()
	g := start(t, tab)
	var all []*exchange
	count := map[string]int{}
	for range 100 {
		x := g.request()
		x.send(post("/v2/models/digits/infer"))
		got, _ := destination(t, x.recv())
		first, _, _ := strings.Cut(got, ",")
		count[first]++
		all = append(all, x)
	}
	if n := count["10.0.0.1:8000"]; n < 73 || n > 77 {
		t.Errorf("the shares of 0.75 and 0.25 got %v of 100", count)
	}
	one, two := tab.Apps["digits"][0].Endpoint, tab.Apps["digits"][1].Endpoint
	if one.Under()+two.Under() != 100 {
		t.Errorf("%d and %d requests are under way, want 100", one.Under(), two.Under())
	}
	for _, x := range all {
		x.send(&extproc.ProcessingRequest{
			MetadataContext: &core.Metadata{FilterMetadata: map[string]*structpb.Struct{"envoy.lb": {
				Fields: map[string]*structpb.Value{
					"x-gateway-destination-endpoint-served": structpb.NewStringValue("10.0.0.2:8000")}}}},
			Request: &extproc.ProcessingRequest_ResponseHeaders{ResponseHeaders: &extproc.HttpHeaders{}},
		})
		if x.recv().GetResponseHeaders() == nil {
			t.Fatal("the response's headers were not answered")
		}
	}
	if one.Under() != 0 || two.Under() != 100 {
		t.Errorf("after all were served by the second: %d and %d", one.Under(), two.Under())
	}
	for i, x := range all {
		if i%2 == 0 { // half end with their body, half with their stream
			x.send(&extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_ResponseBody{
				ResponseBody: &extproc.HttpBody{Body: []byte("answer"), EndOfStream: true}}})
			b := x.recv().GetResponseBody().GetResponse().GetBodyMutation().GetStreamedResponse()
			if string(b.GetBody()) != "answer" || !b.GetEndOfStream() {
				t.Fatalf("the body became %v", b)
			}
		}
		if err := x.stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if _, err := x.stream.Recv(); err == nil {
			t.Fatal("something came after the end")
		}
	}
	for deadline := time.Now().Add(time.Minute); two.Under() != 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if two.Under() != 0 {
		t.Errorf("%d requests are still under way", two.Under())
	}
}

func TestSubset(t *testing.T) {
	g := start(t, table())
	list := func(v ...any) *structpb.Value {
		l, err := structpb.NewList(v)
		if err != nil {
			t.Fatal(err)
		}
		return structpb.NewListValue(l)
	}
	for _, c := range []struct {
		name   string
		subset *structpb.Value
		want   string
	}{
		{"a list", list("10.0.0.2:8000"), "10.0.0.2:8000"},
		{"a text with commas and blanks", structpb.NewStringValue(" 10.0.0.2:8000 , 10.0.0.7:8000"), "10.0.0.2:8000"},
		{"texts with commas in a list", list("10.0.0.7:8000, 10.0.0.2:8000"), "10.0.0.2:8000"},
		{"any port", list("10.0.0.1"), "10.0.0.1:8000"},
		{"another port", list("10.0.0.1:8080"), "503"},
		{"none of ours", list("10.0.0.7:8000"), "503"},
		{"empty", list(), "503"},
		{"an empty text", structpb.NewStringValue(""), "503"},
		{"nonsense", list("everything", 7.0), "503"},
		{"a dispatcher alone", list("10.0.0.9:8000"), "10.0.0.9:8000"},
	} {
		in := post("/v2/models/digits/infer")
		in.MetadataContext = &core.Metadata{FilterMetadata: map[string]*structpb.Struct{"envoy.lb.subset_hint": {
			Fields: map[string]*structpb.Value{"x-gateway-destination-endpoint-subset": c.subset}}}}
		x := g.request()
		x.send(in)
		if got, _ := destination(t, x.recv()); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestRefusals(t *testing.T) {
	empty := start(t, nil)
	x := empty.request()
	x.send(post("/v2/models/digits/infer"))
	if got, _ := destination(t, x.recv()); got != "503" {
		t.Errorf("without a table: %s", got)
	}
	full := table()
	full.Most = 1
	g := start(t, full)
	for i, want := range []string{"10.0.0", "10.0.0", "429"} {
		x := g.request()
		x.send(post("/v2/models/digits/infer"))
		out := x.recv()
		got, _ := destination(t, out)
		if !strings.HasPrefix(got, want) {
			t.Errorf("request %d: %s, want %s", i, got, want)
		}
		if i == 2 && len(out.GetImmediateResponse().GetHeaders().GetSetHeaders()) == 0 {
			t.Error("the refusal says nothing of trying again")
		}
	}
}

// message is a gRPC message that asks an answer of a model.
func message(t testing.TB, m *pb.ModelInferRequest) []byte {
	t.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(data))), data...)
}

// Over gRPC the model's name is in the body, which may come in any pieces. It is renamed and nothing else changes.
func TestGRPC(t *testing.T) {
	g := start(t, table())
	big := make([]byte, 100_000)
	for i := range big {
		big[i] = byte(i)
	}
	for _, c := range []struct {
		name, want, model string
		in                *pb.ModelInferRequest
	}{
		{"an app on workers", "10.0.0.1:8001 10.0.0.2:8001", "digits.big",
			&pb.ModelInferRequest{ModelName: "digits", Id: "7", RawInputContents: [][]byte{big}}},
		{"an app that no worker has", "10.0.0.9:8001", "graph", &pb.ModelInferRequest{ModelName: "graph", Id: "8"}},
		{"a version", "10.0.0.9:8001", "digits",
			&pb.ModelInferRequest{ModelName: "digits", ModelVersion: "2", Id: "9"}},
		{"no name", "10.0.0.9:8001", "", &pb.ModelInferRequest{Id: "9"}},
		{"nothing", "10.0.0.9:8001", "", &pb.ModelInferRequest{}},
	} {
		for _, size := range []int{1, 7, 4096, 1 << 20} {
			whole := message(t, c.in)
			if size == 1 && len(whole) > 1000 {
				continue
			}
			x := g.request()
			x.send(headers(false, ":method", "POST", ":path", "/inference.GRPCInferenceService/ModelInfer",
				"content-type", "application/grpc", "te", "trailers"))
			go func() {
				for at := 0; at < len(whole); at += size {
					end := min(at+size, len(whole))
					x.send(part(end == len(whole), whole[at:end]))
				}
			}()
			got, _ := destination(t, x.recv())
			first, _, _ := strings.Cut(got, ",")
			if !slices.Contains(strings.Fields(c.want), first) {
				t.Errorf("%s in pieces of %d: %s, want one of %s", c.name, size, got, c.want)
			}
			var back []byte
			for ended := false; !ended; {
				b := x.recv().GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse()
				back, ended = append(back, b.GetBody()...), b.GetEndOfStream()
			}
			want := proto.CloneOf(c.in)
			want.ModelName = c.model
			var out pb.ModelInferRequest
			if n := binary.BigEndian.Uint32(back[1:]); int(n) != len(back)-5 {
				t.Errorf("%s: the length is %d of %d bytes", c.name, n, len(back)-5)
			}
			if err := proto.Unmarshal(back[5:], &out); err != nil || !proto.Equal(&out, want) {
				t.Errorf("%s in pieces of %d: %v, %v", c.name, size, out.ModelName, err)
			}
		}
	}
}

// A gateway that does not stream bodies in full duplex waits for an answer to the headers first.
func TestOtherBodyModes(t *testing.T) {
	g := start(t, table())
	x := g.request()
	in := headers(false, ":method", "POST", ":path", "/inference.GRPCInferenceService/ModelInfer", "content-type",
		"application/grpc")
	in.ProtocolConfig = &extproc.ProtocolConfiguration{RequestBodyMode: modes.ProcessingMode_BUFFERED}
	x.send(in)
	if got, _ := destination(t, x.recv()); got != "10.0.0.9:8001" {
		t.Errorf("it went to %s", got)
	}
	x.send(part(true, message(t, &pb.ModelInferRequest{ModelName: "digits"})))
	if r := x.recv().GetRequestBody().GetResponse(); r == nil || r.GetBodyMutation() != nil {
		t.Errorf("the body was answered with %v", r)
	}
}

// Whatever a client sends, the picker answers, and what it passes on is what came, but for the name.
func FuzzGRPCBody(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 8, 10, 6, 'd', 'i', 'g', 'i', 't', 's'}, 3)
	f.Add([]byte{1, 0, 0, 0, 8, 10, 6, 'd', 'i', 'g', 'i', 't', 's'}, 5)
	f.Add([]byte{0, 255, 255, 255, 255, 10, 6, 'd', 'i', 'g', 'i', 't', 's'}, 5)
	g := start(f, table())
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		size = max(1, min(size, 64))
		if len(data) == 0 {
			return
		}
		x := (&gateway{t, g.client, g.server}).request()
		x.send(headers(false, ":method", "POST", ":path", "/inference.GRPCInferenceService/ModelInfer", "content-type",
			"application/grpc"))
		for at := 0; at < len(data); at += size {
			end := min(at+size, len(data))
			x.send(part(end == len(data), data[at:end]))
		}
		_, _ = destination(t, x.recv())
		var back []byte
		for ended := false; !ended; {
			b := x.recv().GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse()
			back, ended = append(back, b.GetBody()...), b.GetEndOfStream()
		}
		if string(back) == string(data) {
			return
		}
		name := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "digits.big")
		if !strings.Contains(string(back), string(name)) || len(back) != len(data)+len(".big") {
			t.Errorf("%q became %q", data, back)
		}
	})
}

// BenchmarkPick is a gateway that asks for up to 20,000 picks/s over eight connections in this process: the client's
// work is in the figures, too. It reports how long an answer takes from the instant at which it was to be asked for.
func BenchmarkPick(b *testing.B) {
	for _, rate := range []int{5000, 10000, 20000} {
		b.Run(fmt.Sprintf("%d_per_s", rate), func(b *testing.B) {
			g := start(b, table())
			var clients []extproc.ExternalProcessorClient
			for range 8 {
				clients = append(clients, start(b, g.server.Table()).client)
			}
			const workers = 64
			var mu sync.Mutex
			var took []time.Duration
			var all sync.WaitGroup
			in := post("/v2/models/digits/infer")
			began, used := time.Now(), processorTime(b)
			for w := range workers {
				all.Go(func() {
					var mine []time.Duration
					for n := w; n < b.N; n += workers {
						due := began.Add(time.Duration(n) * time.Second / time.Duration(rate))
						if d := time.Until(due); d > 0 {
							time.Sleep(d)
						}
						s, err := clients[n%len(clients)].Process(context.Background())
						if err == nil {
							err = s.Send(in)
						}
						if err == nil {
							_, err = s.Recv()
						}
						if err != nil {
							b.Error(err)
							return
						}
						mine = append(mine, time.Since(due))
						_ = s.CloseSend()
						_, _ = s.Recv()
					}
					mu.Lock()
					took = append(took, mine...)
					mu.Unlock()
				})
			}
			all.Wait()
			sort.Slice(took, func(i, j int) bool { return took[i] < took[j] })
			if len(took) == 0 {
				return
			}
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
			b.ReportMetric(float64((processorTime(b)-used).Microseconds())/float64(len(took)), "cpu-us/pick")
			b.ReportMetric(float64(len(took))/time.Since(began).Seconds(), "picks/s")
		})
	}
}

// processorTime is what this process has used: on a machine that others use, it says more than time does.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkTable is the decision alone.
func BenchmarkTable(b *testing.B) {
	t := table()
	for b.Loop() {
		p, err := t.Pick("digits", picker.PortHTTP, nil)
		if err != nil {
			b.Fatal(err)
		}
		_ = p.Value()
		p.Done()
	}
}
