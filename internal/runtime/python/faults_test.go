package python

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/serving"
)

// Secrets of the server are not passed on, also those whose names begin as those of packages do.
func TestSecretsAreNotPassedOn(t *testing.T) {
	for name, want := range map[string]bool{
		"HF_TOKEN": false, "NVIDIA_API_KEY": false, "TORCH_HUB_SECRET": false, "CONDA_TOKEN": false,
		"AWS_SECRET_ACCESS_KEY": false, "HF_HOME": true, "TOKENIZERS_PARALLELISM": true, "CUDA_VISIBLE_DEVICES": true,
	} {
		t.Setenv(name, "x")
		if got := slices.Contains(environ(nil), name+"=x"); got != want {
			t.Errorf("%s is passed on: %v, want %v", name, got, want)
		}
	}
}

// An instance that is closed while a model loads keeps no process of it.
func TestCloseWhileLoading(t *testing.T) {
	began := make(chan struct{}, 1)
	b, l := backendOf(t, strings.Replace(scale, "def load(self, config):",
		"def load(self, config):\n        print('loads', flush=True)\n        __import__('time').sleep(0.5)", 1),
		func(c *Config) {
			log := c.Log
			c.Log = func(model, line string) {
				if log(model, line); strings.Contains(line, "loads") {
					select {
					case began <- struct{}{}:
					default:
					}
				}
			}
		})
	for _, r := range []dataplane.Runner{
		launchedWith(t, b), launchedWith(t, Over(b, nil)),
	} {
		ended := make(chan error, 1)
		go func() { ended <- r.Load(context.Background(), 0, 1) }()
		<-began
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, errClosed) {
			t.Errorf("loaded into a closed instance: %v\n%s", err, l.text())
		}
	}
}

// launchedWith is an instance without variants.
func launchedWith(t *testing.T, b dataplane.Backend) dataplane.Runner {
	t.Helper()
	r, err := b.Launch(t.Context(), dataplane.InstanceSpec{ID: 1, BatchLimit: 1, Slots: 1,
		Variants: []serving.VariantID{}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A context that ends as an answer comes spoils no later message: each ends a little sooner, until one is too soon.
func TestAnEndThatComesTooLateSpoilsNothing(t *testing.T) {
	b, l := backendOf(t, scale, nil)
	m, err := b.modelOf(0)
	if err != nil {
		t.Fatal(err)
	}
	x, err := b.launch(t.Context(), &m, dataplane.InstanceSpec{})
	if err != nil {
		t.Fatal(err, l.text())
	}
	defer x.free()
	defer x.end()
	for k := range 400 {
		ctx, cancel := context.WithCancel(t.Context())
		late := time.AfterFunc(time.Duration(2000-5*k)*time.Microsecond, cancel)
		var out answer
		err := x.talk(ctx, &ask{Op: "warm", Limit: 1}, &out)
		own := ctx.Err() != nil
		late.Stop()
		cancel()
		if err != nil && !own {
			t.Fatalf("message %d fails, and its context has not ended: %v", k, err)
		}
		if err != nil {
			return // it ended before the answer came, so that the process is of no use any more
		}
	}
}
