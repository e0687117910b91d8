package front

import (
	"encoding/json"
	"testing"
)

func TestMerge(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{`{"name":"x","state":"UNAVAILABLE","reason":"loading"}`, `{"name":"x","state":"READY"}`,
			`{"name":"x","state":"READY"}`},
		{`{"name":"x","state":"READY"}`, `{"name":"x","state":"UNAVAILABLE","reason":"loading"}`,
			`{"name":"x","reason":"loading","state":"READY"}`},
		{`{"name":"x","last_inference":5,"inference_count":3,` +
			`"inference_stats":{"success":{"count":3,"ns":9007199254740993}},` +
			`"batch_stats":[{"batch_size":1,"compute":{"count":3}}]}`,
			`{"name":"x","last_inference":4,"inference_count":4,"inference_stats":{"success":{"count":4,"ns":4}},` +
				`"batch_stats":[{"batch_size":2,"compute":{"count":1}},{"batch_size":1,"compute":{"count":2}}]}`,
			`{"batch_stats":[{"batch_size":1,"compute":{"count":5}},{"batch_size":2,"compute":{"count":1}}],` +
				`"inference_count":7,"inference_stats":{"success":{"count":7,"ns":9007199254740997}},` +
				`"last_inference":5,"name":"x"}`},
		{`{"name":"x","version":"1"}`, `not JSON`, `{"name":"x","version":"1"}`},
	} {
		if got := string(merge(json.RawMessage(c.a), json.RawMessage(c.b))); got != c.want {
			t.Errorf("%s and %s give\n%s, want\n%s", c.a, c.b, got, c.want)
		}
	}
}
