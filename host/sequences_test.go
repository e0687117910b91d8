package host

import (
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/models/repository"
	"github.com/sluice-serving/sluice/models/repository/pb"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// A sequence is open from the request that starts it to the one that ends it, or until it was silent for too long.
func TestSequencesMustBeStarted(t *testing.T) {
	a := sequencesOf(&repository.Model{
		Config: &pb.ModelConfig{SequenceBatching: &pb.ModelSequenceBatching{
			MaxSequenceIdleMicroseconds: 10e6,
			StrategyChoice: &pb.ModelSequenceBatching_Oldest{
				Oldest: &pb.ModelSequenceBatching_StrategyOldest{MaxCandidateSequences: 2},
			},
		}},
		Sequence: &repository.Sequence{Controls: []repository.Control{
			{Kind: pb.ModelSequenceBatching_Control_CONTROL_SEQUENCE_CORRID, DType: tensor.Uint64},
		}},
	})
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
		err := s.admit(&dataplane.Request{App: 0, Stream: x.name, Begins: x.begins, Ends: x.ends}, spec)
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("step %d: %v, want %q", k, err, x.want)
		}
	}
	if err := s.admit(&dataplane.Request{App: 1}, spec); err != nil {
		t.Errorf("an app without sequences: %v", err)
	}
}
