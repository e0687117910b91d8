package test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// bodyOf gets a page and returns the status and the body of the answer.
func bodyOf(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	return readBody(t, resp, err)
}

// postTo sends JSON and returns the status and the body of the answer.
func postTo(t *testing.T, url, body string) (int, string) {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	return readBody(t, resp, err)
}

func readBody(t *testing.T, resp *http.Response, err error) (int, string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(got)
}
