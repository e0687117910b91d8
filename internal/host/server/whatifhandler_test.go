package server

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/questions"
	"github.com/sluice-serving/sluice/internal/hosttest"
)

// postWith asks a server and returns the status and the body.
func postWith(t *testing.T, url, body string, header ...string) (int, string) {
	t.Helper()
	return ask(t, http.MethodPost, strings.TrimPrefix(url, "http://"), body, header...)
}

// The page's questions are answered from the latest arrivals, one at a time, and need the token where there is one.
func TestWhatIfOfTheServer(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	entered, leave := make(chan struct{}, 1), make(chan struct{})
	var once sync.Once
	slow := func(ctx context.Context, q *questions.WhatIf) (*questions.WhatIfAnswer, error) {
		once.Do(func() { entered <- struct{}{}; <-leave })
		return q.Answer(ctx, host.Options{}, nil) // at a low priority it never ends on a machine that is full
	}
	text := strings.Replace(hosttest.Fakes, "server: {", "server: {admin_token: token, ", 1)
	s := running(t, text, Options{GRPC: "off", WhatIf: slow})
	const query = `{"inputs":[{"name":"x","datatype":"FP32","shape":[1,4],"data":[1,2,3,4]}]}`
	for range 20 {
		if code, body := postWith(t, "http://"+s.HTTPAddr()+"/v2/models/app/infer", query); code != http.StatusOK {
			t.Fatal(code, body)
		}
	}
	url := "http://" + s.AdminAddr() + "/api/v1/what-if"
	if code, body := postWith(t, url, `{}`); code != http.StatusUnauthorized || !strings.Contains(body, "administer") {
		t.Errorf("without the token: %d %s", code, body)
	}
	secret, err := os.ReadFile(s.planned.File().Path("token"))
	if err != nil {
		t.Fatal(err)
	}
	token := "Bearer " + strings.TrimSpace(string(secret))
	if code, body := postWith(t, url, `{"chnge":{}}`, "Authorization", token); code != http.StatusBadRequest ||
		!strings.Contains(body, "chnge") {
		t.Errorf("a wrong question: %d %s", code, body)
	}
	answered := make(chan string, 1)
	go func() {
		_, body := postWith(t, url, `{"change":{"apps":{"app":{"load":2}}}}`, "Authorization", token)
		answered <- body
	}()
	<-entered
	if code, body := postWith(t, url, `{}`, "Authorization", token); code != http.StatusTooManyRequests {
		t.Errorf("a second question meanwhile: %d %s", code, body)
	}
	close(leave)
	var x struct {
		questions.WhatIfAnswer
		Was map[string]struct{ Served int }
	}
	if err := json.Unmarshal([]byte(<-answered), &x); err != nil {
		t.Fatal(err)
	}
	if x.Queries != 20 || x.Before.Overall.Offered != 20 || x.After.Overall.Offered != 40 || x.Was["app"].Served != 20 {
		t.Errorf("%+v", x)
	}
}
