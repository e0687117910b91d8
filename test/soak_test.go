package test

import (
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A soak: a server with two model servers, under a small load for as long as SLUICE_SOAK says, while one of the model
// servers at a time hangs, fails, flaps, is slow or gives wrong answers and clients go away.
// Memory, goroutines and descriptors are as flat in the end as after a tenth of the time.
func TestSoak(t *testing.T) {
	if os.Getenv("SLUICE_SOAK") == "" {
		t.Skip("set SLUICE_SOAK to a duration, such as 30m")
	}
	lasts, err := time.ParseDuration(os.Getenv("SLUICE_SOAK"))
	if err != nil {
		t.Fatal(err)
	}
	servers := []*modelServer{{}, {}}
	server := twoServers(t, servers[0], servers[1])
	url := server.url() + "/v2"

	end := time.Now().Add(lasts)
	var sent, good, gone atomic.Int64
	var all sync.WaitGroup
	for k := range 4 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(k), 1))
			for time.Now().Before(end) {
				time.Sleep(time.Duration(rng.ExpFloat64() * float64(80*time.Millisecond)))
				sent.Add(1)
				if rng.IntN(20) == 0 { // a client that goes away
					c := http.Client{Timeout: time.Duration(1+rng.IntN(4)) * time.Millisecond}
					c.Transport = &http.Transport{DisableKeepAlives: true}
					r, err := c.Post(url+"/models/app/infer", "application/json", strings.NewReader(oneQuery))
					if err == nil {
						_ = r.Body.Close()
					}
					gone.Add(1)
					continue
				}
				if code, _ := answered(http.MethodPost, url+"/models/app/infer", oneQuery); code == http.StatusOK {
					good.Add(1)
				}
			}
		})
	}
	all.Go(func() { // one fault after another, with a time without any between
		rng := rand.New(rand.NewPCG(9, 9))
		for time.Now().Before(end) {
			s := servers[rng.IntN(2)]
			switch rng.IntN(5) {
			case 0:
				s.hang()
			case 1:
				s.fails.Store(true)
			case 2:
				s.flaps.Store(true)
			case 3:
				s.wrong.Store(true)
			case 4:
				s.delay.Store(int64(200 * time.Millisecond))
			}
			time.Sleep(min(time.Duration(1+rng.IntN(8))*time.Second, time.Until(end)))
			if s.hangs.Load() != nil {
				s.release()
			}
			s.fails.Store(false)
			s.flaps.Store(false)
			s.wrong.Store(false)
			s.delay.Store(0)
			time.Sleep(min(time.Duration(rng.IntN(4))*time.Second, max(time.Until(end), 0)))
		}
	})
	metrics := func() (memory, goroutines, descriptors float64) {
		code, page := bodyOf(t, "http://"+server.admin+"/metrics")
		if code != http.StatusOK {
			t.Fatalf("metrics: %d", code)
		}
		return gauge(t, page, "process_resident_memory_bytes"), gauge(t, page, "go_goroutines"),
			gauge(t, page, "process_open_fds")
	}
	var first, last [3]float64
	for k := range 21 {
		time.Sleep(max(0, time.Until(end.Add(-lasts*time.Duration(20-k)/20))))
		m, g, d := metrics()
		t.Logf("%6.0f s: %.1f MiB resident, %.0f goroutines, %.0f descriptors; %d queries sent, %d answered, %d gone",
			(lasts * time.Duration(k) / 20).Seconds(), m/(1<<20), g, d, sent.Load(), good.Load(), gone.Load())
		if last = [3]float64{m, g, d}; k <= 5 {
			for x := range first {
				first[x] = max(first[x], last[x])
			}
		}
	}
	all.Wait()
	http.DefaultClient.CloseIdleConnections()
	for x, what := range []string{"bytes of memory", "goroutines", "descriptors"} {
		if slack := []float64{32 << 20, 20, 20}[x]; last[x] > first[x]*1.3+slack {
			t.Errorf("%.0f %s in the end, at most %.0f in the first quarter", last[x], what, first[x])
		}
	}
	if good.Load() < (sent.Load()-gone.Load())*9/10 {
		t.Errorf("%d of %d queries were answered", good.Load(), sent.Load()-gone.Load())
	}
}

// gauge returns a number of a page of metrics.
func gauge(t *testing.T, page, name string) float64 {
	t.Helper()
	found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("there is no metric %s", name)
	}
	v, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
