package server_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/api/server"
)

func TestPrices(t *testing.T) {
	now := map[string]float64{"gpu": 0.526, "cpu": 0.15}
	h := server.Prices(func() []server.Price {
		return []server.Price{{"gpu", now["gpu"]}, {"cpu", now["cpu"]}}
	}, func(p server.Price) bool {
		if _, ok := now[p.DeviceType]; !ok {
			return false
		}
		now[p.DeviceType] = p.PricePerHour
		return true
	})
	ask := func(method, kind, body string) (int, string) {
		r := httptest.NewRequest(method, "/prices", strings.NewReader(body))
		r.Header.Set("Content-Type", kind)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	const j = "application/json"
	for _, c := range []struct {
		method, kind, body string
		status             int
		says               string
	}{
		{"PUT", j, `{"device_type": "cpu", "price_per_hour": 0.06}`, 200, `"price_per_hour":0.06`},
		{"PUT", j + "; charset=utf-8", `{"device_type": "gpu", "price_per_hour": 0}`, 200, `"gpu"`},
		{"PUT", j, `{"device_type": "tpu", "price_per_hour": 1}`, 404, "tpu"},
		{"PUT", j, `{"device_type": "cpu", "price_per_hour": -1}`, 400, "at least 0"},
		{"PUT", j, `{"device_type": "cpu", "price_per_hour": 1e999}`, 400, "1e999"},
		{"PUT", j, `{"device_type": "cpu"}`, 400, "price_per_hour"},
		{"PUT", j, `{"price_per_hour": 1}`, 400, "device_type"},
		{"PUT", j, `{"device_type": "cpu", "price": 1}`, 400, `unknown field \"price\"`},
		{"PUT", j, `{"device_type": "cpu", "price_per_hour": 1} x`, 400, "follows"},
		{"PUT", j, ``, 400, "EOF"},
		{"PUT", j, `{"device_type": "` + strings.Repeat("x", 5000) + `", "price_per_hour": 1}`, 413, "4096"},
		{"PUT", "text/plain", `{"device_type": "cpu", "price_per_hour": 1}`, 400, j},
		{"POST", j, `{"device_type": "cpu", "price_per_hour": 1}`, 405, "PUT"},
	} {
		if status, text := ask(c.method, c.kind, c.body); status != c.status || !strings.Contains(text, c.says) {
			t.Errorf("%s %.60s: %d %s", c.method, c.body, status, text)
		}
	}
	status, text := ask(http.MethodGet, "", "")
	var got []server.Price
	if err := json.Unmarshal([]byte(text), &got); err != nil || status != 200 || len(got) != 2 ||
		got[0] != (server.Price{"gpu", 0}) || got[1] != (server.Price{"cpu", 0.06}) {
		t.Errorf("%d %s", status, text)
	}
}
