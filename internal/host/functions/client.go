package functions

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// Client calls the admin port of a server. Its methods return a *Refusal when the server answers an error, and an error
// that wraps ErrUnreachable when no server answers.
type Client struct {
	Address string // HOST:PORT, or https://HOST:PORT for an encrypted one
	Token   string // empty for none
}

// ErrUnreachable is wrapped by the errors of calls that no server answered.
var ErrUnreachable = errors.New("the server does not answer")

// Refusal is an error that a server has answered.
type Refusal struct {
	Status int // of HTTP
	Text   string
}

// Error implements error.
func (r *Refusal) Error() string { return r.Text }

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 16 << 20

func (c *Client) do(ctx context.Context, method, path, kind string, body io.Reader, size int64, to any) error {
	base := c.Address
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	r, err := http.NewRequestWithContext(ctx, method, base+path, body)
	if err != nil {
		return err
	}
	if body != nil {
		r.ContentLength = size
		r.Header.Set("Content-Type", kind)
	}
	if c.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.Token)
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w at %s: %w", ErrUnreachable, c.Address, errors.Unwrap(err))
	}
	defer w.Body.Close()
	b, err := io.ReadAll(io.LimitReader(w.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%w at %s: %w", ErrUnreachable, c.Address, err)
	}
	if w.StatusCode >= 300 {
		var said struct {
			Error string `json:"error"`
		}
		if json.Unmarshal(b, &said) != nil || said.Error == "" {
			said.Error = fmt.Sprintf("%s %s: %s %.200s", method, path, w.Status, strings.TrimSpace(string(b)))
		}
		return &Refusal{w.StatusCode, said.Error}
	}
	if to == nil {
		return nil
	}
	if err := json.Unmarshal(b, to); err != nil {
		return fmt.Errorf("the server at %s answers what is no answer: %w", c.Address, err)
	}
	return nil
}

func functionPath(name string) string { return PathFunctions + url.PathEscape(name) }

// Deploy sends the model file at path model, unless the server has it, and deploys it as a function.
func (c *Client) Deploy(ctx context.Context, name, model string, d Deployment) (s Status, err error) {
	f, err := os.Open(model)
	if err != nil {
		return s, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return s, err
	}
	d.Model = hex.EncodeToString(h.Sum(nil))
	err = c.do(ctx, http.MethodHead, PathModels+d.Model, "", nil, 0, nil)
	if refused := (*Refusal)(nil); errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return s, err
		}
		err = c.do(ctx, http.MethodPut, PathModels+d.Model, "application/octet-stream", io.NopCloser(f), n, nil)
	}
	if err != nil {
		return s, err
	}
	return c.put(ctx, name, d)
}

// DeployChain deploys the text of a chain.yaml.
func (c *Client) DeployChain(ctx context.Context, name, text string, timeoutMS float64) (Status, error) {
	return c.put(ctx, name, Deployment{Chain: text, TimeoutMS: timeoutMS})
}

func (c *Client) put(ctx context.Context, name string, d Deployment) (s Status, err error) {
	body, err := json.Marshal(d)
	if err != nil {
		return s, err
	}
	return s, c.do(ctx, http.MethodPut, functionPath(name), "application/json", bytes.NewReader(body), int64(len(body)),
		&s)
}

// Reload has the server read its configuration file anew.
func (c *Client) Reload(ctx context.Context) (out Reloaded, err error) {
	return out, c.do(ctx, http.MethodPost, PathReload, "application/json", nil, 0, &out)
}

// List returns all functions.
func (c *Client) List(ctx context.Context) (out []Status, err error) {
	return out, c.do(ctx, http.MethodGet, PathFunctions, "", nil, 0, &out)
}

// Get returns one function.
func (c *Client) Get(ctx context.Context, name string) (s Status, err error) {
	return s, c.do(ctx, http.MethodGet, functionPath(name), "", nil, 0, &s)
}

// Logs returns the latest events of a function with a number above after.
func (c *Client) Logs(ctx context.Context, name string, after uint64, limit int) (out []Event, err error) {
	return out, c.do(ctx, http.MethodGet, fmt.Sprintf("%s/logs?after=%d&limit=%d", functionPath(name), after, limit),
		"", nil, 0, &out)
}

// Delete deletes a function. Queries that it has accepted are answered.
func (c *Client) Delete(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodDelete, functionPath(name), "", nil, 0, nil)
}

// Cancel ends the deployment of a function that is under way. What was deployed before stays.
func (c *Client) Cancel(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodDelete, functionPath(name)+"/deployment", "", nil, 0, nil)
}
