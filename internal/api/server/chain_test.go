package server_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/serving"
)

// Links are met in the order in which they are given, and one that refuses a query keeps it from those behind it.
func TestLinksAreMetInOrder(t *testing.T) {
	var met []string
	link := func(name string) server.Link {
		return func(ctx context.Context, q *dataplane.Request, next server.Infer) (*dataplane.Response, error) {
			met = append(met, name)
			if q.Owner == name {
				return nil, context.Canceled
			}
			out, err := next(ctx, q)
			met = append(met, "-"+name)
			return out, err
		}
	}
	infer := server.Chain(func(context.Context, *dataplane.Request) (*dataplane.Response, error) {
		met = append(met, "end")
		return &dataplane.Response{}, nil
	}, link("a"), nil, link("b"), link("c"))
	for _, x := range []struct{ refuses, want string }{
		{"", "a b c end -c -b -a"}, {"b", "a b -a"}, {"a", "a"},
	} {
		met = nil
		out, err := infer(t.Context(), &dataplane.Request{Owner: x.refuses})
		if got := strings.Join(met, " "); got != x.want || (err == nil) != (x.refuses == "") ||
			(out == nil) != (err != nil) {
			t.Errorf("refused by %q: met %q, want %q; %v", x.refuses, got, x.want, err)
		}
	}
}

// A model that is loaded anew while a query of it is read is asked in its new place, by whatever way the query came,
// unless its client has named a version or the new one takes other tensors.
func TestQueriesFollowAModelThatIsLoadedAnew(t *testing.T) {
	for _, x := range []struct {
		path, body string
		decoupled  bool
		other      bool // the new one takes other tensors
		asked      int
		says       string // in the answer
	}{
		{model + "/infer", two, false, false, 2, `"model_version":"5"`},
		{model + "/generate", `{"x":[1,2]}`, false, false, 2, `"model_version":"5"`},
		{model + "/generate_stream", `{"x":[1,2]}`, true, false, 2, "data: "},
		{"/v1/models/digits%2Fv1:predict", `{"instances":[{"x":[1,2]}]}`, false, false, 2, "predictions"},
		{model + "/versions/1/infer", two, false, false, 1, ""},
		{model + "/infer", two, false, true, 1, ""},
	} {
		s := start(t, server.Config{})
		if x.decoupled {
			decoupled(s)
		}
		var asked []serving.AppID
		s.p.infer = func(ctx context.Context, q *dataplane.Request) (*dataplane.Response, error) {
			asked = append(asked, q.App)
			if q.Generation == 0 {
				moved := s.p.model
				moved.App, moved.Generation = 7, 3
				moved.Versions = []server.Version{{Variant: 9, Name: "new", Version: "5"}}
				if moved.Inputs = slices.Clone(moved.Inputs); x.other {
					moved.Inputs[0].Name = "z"
				}
				s.p.mu.Lock()
				s.p.moved = &moved
				s.p.mu.Unlock()
				return nil, &dataplane.Error{Outcome: serving.Refused, Reason: "app closed", Closed: true}
			}
			out, err := counting(ctx, q)
			out.Variant = 9
			return out, err
		}
		code, _, body := s.do(t, "POST", x.path, x.body)
		if len(asked) != x.asked || (code == 200) != (x.asked == 2) {
			t.Errorf("%s: apps %v were asked, want %d times: %d %s", x.path, asked, x.asked, code, body)
		}
		if x.asked == 2 && (asked[1] != 7 || !strings.Contains(body, x.says)) {
			t.Errorf("%s: app %d was asked in place of the model's: %s", x.path, asked[1], body)
		}
	}
}
