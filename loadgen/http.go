package loadgen

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

type httpTarget struct {
	base   string
	client *http.Client
}

// headerLength carries the size of the JSON before binary tensors.
const headerLength = "Inference-Header-Content-Length"

// DialHTTP returns a Target that speaks HTTP to a base address such as http://127.0.0.1:8000. Tensors travel in the binary
// form. A request takes a connection of its own while it lasts; at least connections and 1024 of them are kept when idle. A nil config means the system's roots.
func DialHTTP(base string, connections int, config *tls.Config) (Target, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("address: %w", err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("address %q: want http://HOST:PORT", base)
	}
	connections = max(connections, 1024)
	return &httpTarget{base: strings.TrimRight(base, "/"), client: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			MaxIdleConns: connections, MaxIdleConnsPerHost: connections, IdleConnTimeout: time.Minute, DisableCompression: true,
			TLSClientConfig: config, ResponseHeaderTimeout: time.Hour, WriteBufferSize: 32 << 10, ReadBufferSize: 32 << 10,
		},
	}}, nil
}

// Close implements Target.
func (t *httpTarget) Close() error {
	t.client.CloseIdleConnections()
	return nil
}

func (t *httpTarget) model(name, version string) string {
	path := t.base + "/v2/models/" + url.PathEscape(name)
	if version != "" {
		path += "/versions/" + url.PathEscape(version)
	}
	return path
}

type jsonParameters struct {
	Timeout          int64   `json:"timeout,omitempty"`
	Priority         int32   `json:"priority,omitempty"`
	MinAccuracy      float64 `json:"min_accuracy,omitempty"`
	BinaryDataOutput bool    `json:"binary_data_output"`
}

type jsonTensor struct {
	Name       string  `json:"name"`
	DataType   string  `json:"datatype"`
	Shape      []int64 `json:"shape"`
	Parameters *struct {
		Size *int64 `json:"binary_data_size"`
	} `json:"parameters,omitempty"`
	Data json.RawMessage `json:"data,omitempty"`
}

type jsonResponse struct {
	ModelVersion string                     `json:"model_version"`
	Parameters   map[string]json.RawMessage `json:"parameters"`
	Outputs      []jsonTensor               `json:"outputs"`
	Error        string                     `json:"error"`
}

// Infer implements Target.
func (t *httpTarget) Infer(ctx context.Context, r *Request) (*Answer, error) {
	body, head, err := encodeHTTP(r)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.model(r.Model, r.Version)+"/infer", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set(headerLength, strconv.Itoa(head))
	req.Header.Set("Content-Type", "application/octet-stream")
	resp, err := t.client.Do(req)
	if err != nil {
		// A url.Error repeats the address, which is the same for all.
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		if ctx.Err() == context.DeadlineExceeded {
			return nil, &Error{Outcome: serving.Dropped, Message: "no answer within the request's timeout"}
		}
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxMessage+1))
	if err != nil {
		return nil, err
	}
	if len(answer) > maxMessage {
		return nil, fmt.Errorf("the answer has more than %d bytes", maxMessage)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, httpError(resp.StatusCode, answer)
	}
	return decodeHTTP(answer, resp.Header.Get(headerLength))
}

// httpError sorts statuses into outcomes.
func httpError(code int, body []byte) error {
	var j jsonResponse
	text := ""
	if json.Unmarshal(body, &j) == nil {
		text = j.Error
	}
	e := &Error{Outcome: serving.Failed, Message: fmt.Sprintf("HTTP %d: %s", code, text)}
	switch code {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		e.Outcome = serving.Refused
	case http.StatusGatewayTimeout, http.StatusRequestTimeout:
		e.Outcome = serving.Dropped
	}
	return e
}

// encodeHTTP returns a request's body and the size of the JSON at its start.
func encodeHTTP(r *Request) (body []byte, head int, err error) {
	doc := struct {
		Parameters jsonParameters `json:"parameters"`
		Inputs     []jsonTensor   `json:"inputs"`
	}{Parameters: jsonParameters{Priority: r.Priority, MinAccuracy: r.MinAccuracy, BinaryDataOutput: true}}
	if r.Timeout > 0 {
		doc.Parameters.Timeout = max(1, r.Timeout.Microseconds())
	}
	total := 0
	for i := range r.Inputs {
		in := &r.Inputs[i]
		size := int64(len(in.Data))
		total += len(in.Data)
		j := jsonTensor{Name: in.Name, DataType: in.DType.String(), Shape: in.Shape}
		j.Parameters = &struct {
			Size *int64 `json:"binary_data_size"`
		}{&size}
		doc.Inputs = append(doc.Inputs, j)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, 0, err
	}
	body = make([]byte, 0, len(text)+total)
	body = append(body, text...)
	for i := range r.Inputs {
		body = append(body, r.Inputs[i].Data...)
	}
	return body, len(text), nil
}

// decodeHTTP reads an answer whose outputs are binary, JSON, or both.
func decodeHTTP(body []byte, head string) (*Answer, error) {
	text, rest := body, []byte(nil)
	if head != "" {
		n, err := strconv.Atoi(head)
		if err != nil || n < 0 || n > len(body) {
			return nil, fmt.Errorf("the answer's %s is %q for %d bytes", headerLength, head, len(body))
		}
		text, rest = body[:n], body[n:]
	}
	var j jsonResponse
	if err := json.Unmarshal(text, &j); err != nil {
		return nil, fmt.Errorf("the answer is not JSON: %w", err)
	}
	a := &Answer{}
	for key, raw := range j.Parameters {
		var s string
		var f float64
		switch {
		case json.Unmarshal(raw, &s) == nil:
			a.parameter(key, s, 0, 0)
		case json.Unmarshal(raw, &f) == nil:
			a.parameter(key, "", clampInt(f), f)
		}
	}
	if a.Variant == "" {
		a.Variant = j.ModelVersion
	}
	for i := range j.Outputs {
		o := &j.Outputs[i]
		t := tensor.Tensor{Name: o.Name, DType: tensor.ParseDType(o.DataType), Shape: o.Shape}
		if o.Parameters != nil && o.Parameters.Size != nil {
			n := *o.Parameters.Size
			if n < 0 || n > int64(len(rest)) {
				return nil, fmt.Errorf("output %q claims %d bytes, %d are left", o.Name, n, len(rest))
			}
			t.Data, rest = rest[:n], rest[n:]
		} else if len(o.Data) > 0 {
			var err error
			if t.Data, err = jsonData(t.DType, o.Data); err != nil {
				return nil, fmt.Errorf("output %q: %w", o.Name, err)
			}
		}
		a.Outputs = append(a.Outputs, t)
	}
	return a, nil
}

// jsonData turns the elements of a JSON array, nested or flat, into raw data.
func jsonData(d tensor.DType, text []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var out []byte
	depth := 0
	for {
		tok, err := dec.Token()
		if err == io.EOF && depth == 0 {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		switch v := tok.(type) {
		case json.Delim:
			switch v {
			case '[':
				depth++
			case ']':
				depth--
			default:
				return nil, errors.New("an object is no element")
			}
		case string:
			out = tensor.AppendBytes(out, []byte(v))
		case bool:
			b := byte(0)
			if v {
				b = 1
			}
			out = append(out, b)
		case json.Number:
			if out, err = appendNumber(out, d, v.String()); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("%v is no element", tok)
		}
	}
}

func appendNumber(out []byte, d tensor.DType, text string) ([]byte, error) {
	var bits uint64
	switch d {
	case tensor.FP32, tensor.FP64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, err
		}
		if d == tensor.FP32 {
			return binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(f))), nil
		}
		bits = math.Float64bits(f)
	case tensor.Uint64:
		u, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return nil, err
		}
		bits = u
	default:
		i, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, err
		}
		bits = uint64(i)
	}
	for range d.Size() {
		out = append(out, byte(bits))
		bits >>= 8
	}
	return out, nil
}

// Inputs implements Target.
func (t *httpTarget) Inputs(ctx context.Context, model string) ([]tensor.Spec, error) {
	fail := func(err error) ([]tensor.Spec, error) { return nil, fmt.Errorf("metadata of model %q: %w", model, err) }
	ctx, cancel := context.WithTimeout(ctx, metadataTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.model(model, ""), nil)
	if err != nil {
		return fail(err)
	}
	resp, err := t.client.Do(req)
	if err != nil {
		return fail(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fail(err)
	}
	if resp.StatusCode != http.StatusOK {
		return fail(httpError(resp.StatusCode, body))
	}
	var j struct {
		Inputs []jsonTensor `json:"inputs"`
	}
	if err := json.Unmarshal(body, &j); err != nil {
		return fail(err)
	}
	var out []tensor.Spec
	for _, in := range j.Inputs {
		out = append(out, tensor.Spec{Name: in.Name, DType: tensor.ParseDType(in.DataType), Shape: in.Shape})
	}
	return out, nil
}
