package monitor

import (
	"testing"

	"github.com/sluice-serving/sluice/serving"
)

func TestAnswers(t *testing.T) {
	r := NewRates(1)
	r.Grow([]serving.AppID{1})
	r.Answer(1, 0.5)
	r.Answer(1, 0.25)
	if n, sum := r.Answers(1); n != 2 || sum != 0.75 {
		t.Errorf("%d answers with %v, want 2 with 0.75", n, sum)
	}
	if n, sum := r.Answers(0); n != 0 || sum != 0 {
		t.Errorf("%d answers with %v, want none", n, sum)
	}
}
