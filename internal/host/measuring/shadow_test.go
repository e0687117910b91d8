package measuring

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/server"
	"github.com/sluice-serving/sluice/internal/hosttest"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
)

// A server records inputs within their bound, and compares variants in idle time: two variants that always agree are
// not as far apart as the configuration says.
func TestServerRecordsAndShadows(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "sluice.yaml")
	const settings = `server: {not_ready: 0s, shadow: 1, record: {folder: kept, share: 1, size: 4KiB}}
`
	text := fmt.Appendf(nil, echoes+settings, ", accuracy: 0.5", ", accuracy: 0.9")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	o, err := host.Open(file, host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.Profile()
	if err != nil {
		t.Fatal(err)
	}
	log := &hosttest.Lines{}
	s, err := server.New(t.Context(), p, server.Options{HTTP: "127.0.0.1:0", GRPC: "off", Admin: "off",
		Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	if err := s.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	warned := func() bool { return log.Has("not as accurate as plans believe") && log.Has("variant=small") }
	for begun := time.Now(); !warned() && time.Since(begun) < 30*time.Second; {
		r, err := http.Post("http://"+s.HTTPAddr()+"/v2/models/echo/infer", "application/json",
			strings.NewReader(`{"inputs":[{"name":"x","datatype":"FP32","shape":[1,3],"data":[1,0,0]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	if !warned() {
		t.Error("nothing was said of variants that always agree")
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	found, total := 0, int64(0)
	all, err := filepath.Glob(filepath.Join(dir, "kept", "echo", "*.request"))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range all {
		st, err := os.Stat(x)
		if err != nil {
			t.Fatal(err)
		}
		if found, total = found+1, total+st.Size(); st.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", x, st.Mode())
		}
	}
	if found < 5 || total > 4<<10 {
		t.Errorf("%d files of %d bytes are kept", found, total)
	}
	got, err := MeasureAccuracy(t.Context(), o, Judging{Samples: filepath.Join(dir, "kept"), Agree: true})
	want := profiler.Accuracy{Variant: "small", How: profiler.ByAgreement, Value: 1, Samples: found, Reference: "large"}
	if err != nil || len(got.Accuracies) != 1 || got.Accuracies[0] != want {
		t.Errorf("%+v, %v", got, err)
	}
}
