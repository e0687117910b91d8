package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestCommandsAreListed(t *testing.T) {
	var out bytes.Buffer
	if err := dispatch(t.Context(), nil, &out); err != nil {
		t.Fatal(err)
	}
	for _, c := range commands {
		if !strings.Contains(out.String(), "  "+c.name+" ") {
			t.Errorf("the list lacks %q:\n%s", c.name, out.String())
		}
		if c.summary == "" || c.run == nil {
			t.Errorf("command %q has no summary or does nothing", c.name)
		}
	}
}

func TestUnknownCommandIsRefused(t *testing.T) {
	err := dispatch(t.Context(), []string{"serve"}, &bytes.Buffer{})
	if err == nil || !strings.HasPrefix(err.Error(), `there is no command "serve": there is `) {
		t.Errorf("got %v", err)
	}
}
