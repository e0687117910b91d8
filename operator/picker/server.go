package picker

import (
	"errors"
	"io"
	"strings"
	"sync/atomic"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	modes "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Server answers a gateway's external processing: a stream for each request.
type Server struct {
	extproc.UnimplementedExternalProcessorServer
	table atomic.Pointer[Table]

	picks, none, busy, moved atomic.Uint64
}

// Use has requests routed by another table from now on.
func (s *Server) Use(t *Table) { s.table.Store(t) }

// Table returns what requests are routed by; nil before the first.
func (s *Server) Table() *Table { return s.table.Load() }

// request is one request on its way.
type request struct {
	server *Server
	stream grpc.ServerStream

	grpc, waits    bool // waits: for the model's name, which is in the body
	path           string
	subset         *Subset
	head           head
	duplex, duplet bool // bodies of the request, of the response, are streamed in full duplex
	picked         *Picked
}

// process answers a stream.
func (s *Server) process(stream grpc.ServerStream) error {
	r := &request{server: s, stream: stream, duplex: true, duplet: true}
	defer r.end()
	in := &inbound{}
	for {
		err := stream.RecvMsg(in)
		switch {
		case errors.Is(err, io.EOF), status.Code(err) == codes.Canceled:
			return nil
		case err != nil:
			return err
		}
		if in.full == nil {
			if in.configured {
				r.duplex, r.duplet = in.duplex, in.duplet
			}
			err = r.begin(&in.head)
		} else {
			if c := in.full.GetProtocolConfig(); c != nil {
				r.duplex = c.GetRequestBodyMode() == modes.ProcessingMode_FULL_DUPLEX_STREAMED
				r.duplet = c.GetResponseBodyMode() == modes.ProcessingMode_FULL_DUPLEX_STREAMED
			}
			err = r.take(in.full)
		}
		if err != nil {
			return err
		}
	}
}

// send answers with a message.
func (r *request) send(out *extproc.ProcessingResponse) error {
	return r.stream.SendMsg(&outbound{full: out})
}

// take answers one message of the gateway.
func (r *request) take(in *extproc.ProcessingRequest) error {
	switch x := in.GetRequest().(type) {
	case *extproc.ProcessingRequest_RequestHeaders:
		return r.headers(x.RequestHeaders, in.GetMetadataContext())
	case *extproc.ProcessingRequest_RequestBody:
		return r.body(x.RequestBody)
	case *extproc.ProcessingRequest_RequestTrailers:
		if r.waits { // the body has ended without a name
			if err := r.flush(true, false); err != nil {
				return err
			}
		}
		return r.send(&extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_RequestTrailers{
			RequestTrailers: &extproc.TrailersResponse{}}})
	case *extproc.ProcessingRequest_ResponseHeaders:
		if r.picked != nil {
			if served := servedOf(in.GetMetadataContext()); served != "" {
				before := r.picked.Endpoint
				if r.picked.Moved(served); r.picked.Endpoint != before {
					r.server.moved.Add(1)
				}
			}
		}
		if x.ResponseHeaders.GetEndOfStream() {
			r.end()
		}
		return r.send(&extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ResponseHeaders{
			ResponseHeaders: &extproc.HeadersResponse{}}})
	case *extproc.ProcessingRequest_ResponseBody:
		b := x.ResponseBody
		if b.GetEndOfStream() {
			r.end()
		}
		return r.send(responseBody(body(b.GetBody(), b.GetEndOfStream(), r.duplet, false)))
	case *extproc.ProcessingRequest_ResponseTrailers:
		r.end()
		return r.send(&extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ResponseTrailers{
			ResponseTrailers: &extproc.TrailersResponse{}}})
	}
	return status.Error(codes.InvalidArgument, "picker: a message of a kind that external processing does not have")
}

func (r *request) headers(h *extproc.HttpHeaders, m *core.Metadata) error {
	head := requestHead{end: h.GetEndOfStream()}
	for _, x := range h.GetHeaders().GetHeaders() {
		value := x.GetRawValue()
		if len(value) == 0 {
			value = []byte(x.GetValue())
		}
		head.set([]byte(x.GetKey()), value)
	}
	r.subset = subsetOf(m)
	return r.begin(&head)
}

// begin routes a request by its headers, or has it wait for its body.
func (r *request) begin(h *requestHead) error {
	r.path, r.grpc = h.path, h.grpc
	switch {
	case r.grpc && r.path == callInfer && !h.end && r.duplex:
		// In other modes the gateway sends no body before the headers are answered.
		r.waits = true
		return nil
	case r.grpc || h.other:
		return r.route("", "")
	}
	app, _ := appOfPath(r.path)
	return r.route(app, "")
}

// route picks an endpoint and tells the gateway. name is the model's name in a message that is to be renamed.
func (r *request) route(app, name string) error {
	t := r.server.table.Load()
	port := PortHTTP
	if r.grpc {
		port = PortGRPC
	}
	err := ErrNone
	var p Picked
	if t != nil {
		p, err = t.Pick(app, port, r.subset)
	}
	if err != nil {
		if err == ErrBusy { //nolint:errorlint // Pick returns it as it is
			r.server.busy.Add(1)
		} else {
			r.server.none.Add(1)
		}
		return r.send(refused(err, r.grpc))
	}
	r.server.picks.Add(1)
	r.picked = &p
	path, remove := "", []string(nil)
	switch {
	case p.Model == "":
	case r.grpc && name != "":
		remove = []string{"content-length"}
	default:
		path = withModel(r.path, p.Model)
	}
	return r.stream.SendMsg(&outbound{raw: appendRouted(nil, p.Value(), path, remove)})
}

func (r *request) body(b *extproc.HttpBody) error {
	if !r.waits {
		if r.picked == nil {
			return nil // it was answered in the gateway's place
		}
		return r.send(requestBody(body(b.GetBody(), b.GetEndOfStream(), r.duplex, false)))
	}
	r.head.data = append(r.head.data, b.GetBody()...)
	switch r.head.read(b.GetEndOfStream()) {
	case more:
		return nil
	case found:
		return r.flush(b.GetEndOfStream(), true)
	}
	return r.flush(b.GetEndOfStream(), false)
}

// flush routes a request whose model is known, or will not be, and passes on what was kept of its body.
func (r *request) flush(end, known bool) error {
	r.waits = false
	app := ""
	if known && !strings.ContainsAny(r.head.model, "/") {
		app = r.head.model
	}
	if err := r.route(app, app); err != nil || r.picked == nil {
		return err
	}
	data, changed := r.head.data, false
	if app != "" && r.picked.Model != "" {
		data, changed = r.head.renamed(r.picked.Model), true
	}
	r.head.data = nil
	return r.send(requestBody(body(data, end, r.duplex, changed)))
}

// end says that the request is over, once.
func (r *request) end() {
	if r.picked != nil && !r.picked.ended {
		r.picked.ended = true
		r.picked.Done()
	}
}
