package cli

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/tensor"
)

// What a banner tells somebody to type is what it means, whatever names a model file has: a shell gives it back, and
// the body is JSON.
func TestBannerQuotesNames(t *testing.T) {
	for _, name := range []string{"adder", "a b", "it's", "$(reboot)", "`reboot`", "x;y", "\x1b[2J", "ä\n", `"\`, ""} {
		got, err := exec.Command("sh", "-c", "printf %s "+shellWord(name)).Output()
		if err != nil || string(got) != name {
			t.Errorf("%q comes back as %q, %v", name, got, err)
		}
		body, ok := exampleBody([]tensor.Spec{{Name: name, DType: tensor.FP32, Shape: []int64{-1, 2}}})
		var read struct{ Inputs []struct{ Name string } }
		if err := json.Unmarshal([]byte(body), &read); !ok || err != nil || read.Inputs[0].Name != name {
			t.Errorf("%q: %s, %v", name, body, err)
		}
		if shown := printable(name); strings.ContainsAny(shown, "\x1b\n") {
			t.Errorf("a terminal is shown %q", shown)
		}
	}
}
