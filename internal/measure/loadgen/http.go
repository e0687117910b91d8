package loadgen

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

type httpTarget struct {
	base   string
	client *http.Client
}

// DialHTTP returns a Target that speaks HTTP to a base address such as http://127.0.0.1:8000, with tensors in binary
// form. Each request has a connection of its own; up to max(connections, 1024) idle ones are kept. A nil config means
// the system's root certificates.
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
			MaxIdleConns: connections, MaxIdleConnsPerHost: connections, IdleConnTimeout: time.Minute,
			DisableCompression: true,
			TLSClientConfig:    config, ResponseHeaderTimeout: time.Hour, WriteBufferSize: 32 << 10,
			ReadBufferSize: 32 << 10,
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

// Infer implements Target.
func (t *httpTarget) Infer(ctx context.Context, r *Request) (*Answer, error) {
	// The protocol counts timeouts in microseconds. A shorter one must not become 0, which means none.
	ask := &oip.RESTRequest{Inputs: r.Inputs, BinaryOutputs: true,
		Params: oip.Params{Timeout: r.Timeout, Priority: r.Priority, MinAccuracy: r.MinAccuracy,
			Sequence: r.Sequence, SequenceStart: r.First, SequenceEnd: r.Last, SequenceRate: r.Rate,
			StageTimings: r.StageTimings}}
	for _, name := range r.Outputs {
		ask.Outputs = append(ask.Outputs, oip.RequestedOutput{Name: name})
	}
	if r.Timeout > 0 {
		ask.Params.Timeout = max(r.Timeout, time.Microsecond)
	}
	body, head, err := oip.EncodeRESTRequest(ask, true)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.model(r.Model, r.Version)+"/infer",
		bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if head != oip.NoBinary {
		req.Header.Set(oip.HeaderLength, strconv.Itoa(head))
	}
	req.Header.Set("Content-Type", "application/octet-stream")
	authorize(ctx, req)
	resp, err := t.client.Do(req)
	if err != nil {
		// A url.Error repeats the address, which is the same for all queries.
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
	return decodeHTTP(answer, resp.Header.Get(oip.HeaderLength))
}

// httpError maps a status to an outcome.
func httpError(code int, body []byte) error {
	var j struct {
		Error string `json:"error"`
	}
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

// decodeHTTP decodes an answer with binary or JSON outputs, or both.
func decodeHTTP(body []byte, head string) (*Answer, error) {
	n := oip.NoBinary
	if head != "" {
		var err error
		if n, err = strconv.Atoi(head); err != nil || n < 0 {
			return nil, fmt.Errorf("the answer's %s is %q", oip.HeaderLength, head)
		}
	}
	r, err := oip.DecodeRESTResponse(body, n)
	if err != nil {
		return nil, fmt.Errorf("the answer: %w", err)
	}
	a := &Answer{Variant: r.ModelVersion, Outputs: r.Outputs}
	for _, p := range r.Params {
		switch x := p.Value.(type) {
		case string:
			a.parameter(p.Name, x, 0, 0)
		case int64:
			a.parameter(p.Name, "", x, float64(x))
		case float64:
			a.parameter(p.Name, "", clampInt(x), x)
		}
	}
	return a, nil
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
	authorize(ctx, req)
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
		Inputs []struct {
			Name     string  `json:"name"`
			DataType string  `json:"datatype"`
			Shape    []int64 `json:"shape"`
		} `json:"inputs"`
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
