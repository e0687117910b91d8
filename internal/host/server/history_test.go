package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/hosttest"
	"github.com/sluice-serving/sluice/internal/measure/board"
)

// What was seen before a restart is there after it, at times before the start.
func TestHistorySurvivesARestart(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	file := t.TempDir() + "/history.db"
	text := hosttest.Fakes + fmt.Sprintf("telemetry: {history: %q}\n", file)
	const query = `{"inputs":[{"name":"x","datatype":"FP32","shape":[1,4],"data":[1,2,3,4]}]}`
	ask := func(s *Server) (sum uint32, before bool) {
		var x struct{ Series board.Series }
		get(t, s.AdminAddr()+"/api/v1/history?app=app", &x)
		for k, n := range x.Series.Served {
			sum += n
			before = before || n > 0 && x.Series.At[k] < 0
		}
		return sum, before
	}
	t.Run("first", func(t *testing.T) {
		s := running(t, text, Options{GRPC: "off"})
		for range 7 {
			postWith(t, "http://"+s.HTTPAddr()+"/v2/models/app/infer", query)
		}
		s.history.start -= 100 // as if it had run long ago
		// The second in which they were answered has to pass; nobody waits for it.
		s.board.Advance(s.plane.Now().Add(2 * historyEvery))
		if err := s.history.write(); err != nil {
			t.Fatal(err)
		}
		if sum, _ := ask(s); sum != 7 {
			t.Errorf("%d queries in the history, 7 were answered", sum)
		}
	})
	s := running(t, text, Options{GRPC: "off"})
	if sum, before := ask(s); sum != 7 || !before {
		t.Errorf("after the restart %d queries, before it: %v", sum, before)
	}
	var info struct {
		HistoryMS int64 `json:"history_ms"`
	}
	if get(t, s.AdminAddr()+"/api/v1/info", &info); info.HistoryMS == 0 {
		t.Error("the page is not told of the history")
	}
	resp, err := http.Get("http://" + s.AdminAddr() + "/api/v1/history?from=x")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest || !strings.Contains(resp.Header.Get("Content-Type"), "json") {
		t.Errorf("a wrong question: %d", resp.StatusCode)
	}
}
