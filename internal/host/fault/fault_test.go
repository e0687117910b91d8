package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

// The outermost kind counts, whatever wraps it, and the text and the causes stay.
func TestOf(t *testing.T) {
	plain := fmt.Errorf("a.yaml: %w", fs.ErrNotExist)
	for _, c := range []struct {
		name string
		err  error
		want Kind
	}{
		{"no error", nil, Failed},
		{"an error without a kind", plain, Failed},
		{"a wrapped one", Wrap(Config, plain), Config},
		{"in words", Errorf(Missing, "the solver: %w", plain), Missing},
		{"inside another", fmt.Errorf("starting: %w", Wrap(NoServer, plain)), NoServer},
		{"twice", Errorf(Usage, "--compare: %w", Wrap(Config, plain)), Usage},
		{"joined", errors.Join(Wrap(Short, plain), plain), Short},
	} {
		if got := Of(c.err); got != c.want {
			t.Errorf("%s: kind %d, want %d", c.name, got, c.want)
		}
		if c.err != nil && !errors.Is(c.err, fs.ErrNotExist) {
			t.Errorf("%s: the cause is lost", c.name)
		}
	}
	if got := Wrap(Config, plain).Error(); got != plain.Error() {
		t.Errorf("the text became %q", got)
	}
}
