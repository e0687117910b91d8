package server

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/models/repository"
	"github.com/sluice-serving/sluice/internal/models/repository/pb"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// A sequence is open from the request that starts it to the one that ends it, or until it was silent for too long.
func TestSequencesMustBeStarted(t *testing.T) {
	a := sequencesOf(&repository.Model{
		Config: &pb.ModelConfig{SequenceBatching: &pb.ModelSequenceBatching{
			MaxSequenceIdleMicroseconds: 10e6,
		}},
		Sequence: &repository.Sequence{Controls: []repository.Control{
			{Kind: pb.ModelSequenceBatching_Control_CONTROL_SEQUENCE_CORRID, DType: tensor.Uint64},
		}},
	})
	a.most = 2
	now := time.Unix(0, 0)
	s := &sequences{byApp: map[serving.AppID]*appSequences{0: a}, now: func() time.Time { return now }}
	spec := &serving.Spec{Apps: []serving.App{{Name: "m"}, {Name: "other"}}}
	for k, x := range []struct {
		name         string
		begins, ends bool
		after        time.Duration
		want         string
	}{
		{"", false, false, 0, "must specify a non-zero or non-empty correlation ID"},
		{"camera", true, false, 0, "needs a number"},
		{"1", false, false, 0, "must specify the START flag"},
		{"1", true, false, 0, ""},
		{"1", false, false, 9 * time.Second, ""},
		{"2", true, false, 0, ""},
		{"3", true, false, 0, "2 open sequences"},
		{"3", true, true, 0, ""}, // of one request: it never stays open
		{"1", false, true, 0, ""},
		{"1", false, false, 0, "must specify the START flag"},
		{"2", false, false, 11 * time.Second, "must specify the START flag"},
		{"3", true, false, 0, ""},
		{"4", true, false, 0, ""},
	} {
		now = now.Add(x.after)
		_, ended, err := s.admit(t.Context(),
			&dataplane.Request{App: 0, Stream: x.name, Begins: x.begins, Ends: x.ends}, spec)
		if err == nil {
			ended(nil)
		}
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("step %d: %v, want %q", k, err, x.want)
		}
	}
	if _, _, err := s.admit(t.Context(), &dataplane.Request{App: 1}, spec); err != nil {
		t.Errorf("an app without sequences: %v", err)
	}
}

// Cancelling a query of a sequence cancels those behind it, and no other, and the sequence ends. A model that batches
// takes requests of one item.
func TestCancelledSequences(t *testing.T) {
	a := sequencesOf(&repository.Model{
		Config:   &pb.ModelConfig{SequenceBatching: &pb.ModelSequenceBatching{}, MaxBatchSize: proto.Int32(4)},
		Sequence: &repository.Sequence{},
	})
	s := &sequences{byApp: map[serving.AppID]*appSequences{0: a}, now: func() time.Time { return time.Unix(0, 0) }}
	spec := &serving.Spec{Apps: []serving.App{{Name: "m"}}}
	var contexts []context.Context
	var ends []func(error)
	clients := make([]context.CancelFunc, 5)
	for k, x := range []dataplane.Request{
		{Stream: "a", Begins: true}, {Stream: "a"}, {Stream: "a"}, {Stream: "b", Begins: true},
		{Stream: "a", Begins: true},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		clients[k] = cancel
		within, ended, err := s.admit(ctx, &x, spec)
		if err != nil {
			t.Fatal(err)
		}
		contexts, ends = append(contexts, within), append(ends, ended)
	}
	clients[1]()
	ends[1](contexts[1].Err())
	for k, want := range []bool{false, true, true, false, false} {
		if got := contexts[k].Err() != nil; got != want {
			t.Errorf("query %d is cancelled: %v", k, got)
		}
	}
	if _, _, err := s.admit(t.Context(), &dataplane.Request{Stream: "a"}, spec); err != nil {
		t.Errorf("the sequence that began behind it: %v", err)
	}
	clients[3]()
	ends[3](contexts[3].Err())
	_, _, err := s.admit(t.Context(), &dataplane.Request{Stream: "b"}, spec)
	if err == nil || !strings.Contains(err.Error(), "START") {
		t.Errorf("a sequence of which a query was cancelled: %v", err)
	}
	for _, k := range []int{0, 2, 4} {
		ends[k](contexts[k].Err())
		clients[k]()
	}
	if left := a.open["a"]; len(left.under) != 1 {
		t.Errorf("%d queries are under way", len(left.under))
	}
	_, _, err = s.admit(t.Context(), &dataplane.Request{Stream: "a", Items: 2}, spec)
	if err == nil || !strings.Contains(err.Error(), "must specify batch-size 1") {
		t.Errorf("two items: %v", err)
	}
}
