package picker

import (
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	envoytype "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/structpb"
)

// Names of the endpoint-picker protocol 1.0.
const (
	keyEndpoint     = "x-gateway-destination-endpoint"
	keyServed       = "x-gateway-destination-endpoint-served"
	keySubset       = "x-gateway-destination-endpoint-subset"
	namespaceLB     = "envoy.lb"
	namespaceSubset = "envoy.lb.subset_hint"
)

// subsetOf reads the endpoints that the gateway allows; nil where it does not say. Gateways write a list, or a text
// with commas.
func subsetOf(m *core.Metadata) *Subset {
	value, ok := m.GetFilterMetadata()[namespaceSubset].GetFields()[keySubset]
	if !ok {
		return nil
	}
	s := &Subset{map[string]bool{}, map[string]bool{}}
	texts := []*structpb.Value{value}
	if list := value.GetListValue(); list != nil {
		texts = list.GetValues()
	}
	for _, t := range texts {
		for _, e := range strings.Split(t.GetStringValue(), ",") {
			s.add(strings.TrimSpace(e))
		}
	}
	return s
}

// servedOf reads which endpoint served a request; empty where the gateway does not say.
func servedOf(m *core.Metadata) string {
	return m.GetFilterMetadata()[namespaceLB].GetFields()[keyServed].GetStringValue()
}

func header(key, value string) *core.HeaderValueOption {
	return &core.HeaderValueOption{
		Header:       &core.HeaderValue{Key: key, RawValue: []byte(value)},
		AppendAction: core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}
}

// refused answers a request in the gateway's place: 503 where nothing is ready, 429 where it is dropped.
func refused(err error, grpc bool) *extproc.ProcessingResponse {
	status, code := envoytype.StatusCode_ServiceUnavailable, codes.Unavailable
	if err == ErrBusy { //nolint:errorlint // Pick returns it as it is
		status, code = envoytype.StatusCode_TooManyRequests, codes.ResourceExhausted
	}
	out := &extproc.ImmediateResponse{
		Status: &envoytype.HttpStatus{Code: status}, Details: "sluice_picker",
		Headers: &extproc.HeaderMutation{SetHeaders: []*core.HeaderValueOption{header("retry-after", "1")}},
		Body:    []byte(`{"error":"` + err.Error() + `"}`),
	}
	if grpc {
		out.GrpcStatus, out.Body = &extproc.GrpcStatus{Status: uint32(code)}, []byte(err.Error())
	} else {
		out.Headers.SetHeaders = append(out.Headers.SetHeaders, header("content-type", "application/json"))
	}
	return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ImmediateResponse{ImmediateResponse: out}}
}

// body passes a part of a body on. Where bodies are streamed in full duplex, what is not sent back is lost; otherwise
// only a change is sent.
func body(data []byte, end, duplex, changed bool) *extproc.CommonResponse {
	switch {
	case duplex:
		return &extproc.CommonResponse{BodyMutation: &extproc.BodyMutation{
			Mutation: &extproc.BodyMutation_StreamedResponse{StreamedResponse: &extproc.StreamedBodyResponse{
				Body: data, EndOfStream: end}}}}
	case changed:
		return &extproc.CommonResponse{BodyMutation: &extproc.BodyMutation{
			Mutation: &extproc.BodyMutation_Body{Body: data}}}
	}
	return &extproc.CommonResponse{}
}

func requestBody(c *extproc.CommonResponse) *extproc.ProcessingResponse {
	return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_RequestBody{
		RequestBody: &extproc.BodyResponse{Response: c}}}
}

func responseBody(c *extproc.CommonResponse) *extproc.ProcessingResponse {
	return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ResponseBody{
		ResponseBody: &extproc.BodyResponse{Response: c}}}
}
