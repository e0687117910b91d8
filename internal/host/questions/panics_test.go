package questions

import (
	"errors"
	"testing"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/host"
)

// A question that panics is answered by an error.
func TestPanicsOfQuestionsAreErrors(t *testing.T) {
	var panicked *dataplane.Panic
	q := question(t, 10, Change{})
	q.Measurements.Latency[0].Items = -1
	if _, err := q.Answer(t.Context(), host.Options{}, nil); err == nil {
		t.Error("a question with impossible measurements is answered")
	}
	q = question(t, 10, Change{})
	q.Arrivals[0].App = -7
	if _, err := q.Answer(t.Context(), host.Options{}, nil); !errors.As(err, &panicked) {
		t.Errorf("a question about an app that is none: %v", err)
	}
}
