package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/bounded"
)

// No body makes the reader of prices panic, and what it takes is a price.
func FuzzReadPrice(f *testing.F) {
	f.Add([]byte(`{"device_type": "gpu", "price_per_hour": 0.6}`))
	f.Add([]byte(`{"device_type": null, "price_per_hour": 1e999} {}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		defer bounded.Watch(t, bounded.Fuzz(len(body)))()
		r := httptest.NewRequest(http.MethodPut, "/prices", strings.NewReader(string(body)))
		r.Header.Set("Content-Type", "application/json")
		if p, err := readPrice(httptest.NewRecorder(), r); err == nil && !(p.PricePerHour >= 0) {
			t.Errorf("%q was taken as %+v", body, p)
		}
	})
}
