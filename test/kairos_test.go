package test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/engine/journal"
	"github.com/sluice-serving/sluice/internal/measure/loadgen"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// placed is a batch as a journal has it, and on which kind of machine it ran.
type placed struct {
	id            uint64
	at            serving.Time
	device, items int
}

// rented is a plan that came into force.
type rented struct {
	at   serving.Time
	pool pool
	cost float64
}

// history reads what a server over mixed machines did: its plans, and the batches that ended, in the order in which
// they began. A batch that counts as lost does not: its queries run again in another.
func history(t *testing.T, path string) (plans []rented, out []placed) {
	t.Helper()
	on := make(map[int]int)
	ended := make(map[uint64]bool)
	unmeasured(t, path, func(s *journal.Step) {
		for _, in := range s.In {
			if in.Kind == engine.BatchDone {
				ended[uint64(in.Batch)] = true
			}
			if in.Kind != engine.PlanReady {
				continue
			}
			p := rented{at: s.At, cost: in.Plan.Forecast.CostPerHour}
			for _, i := range in.Plan.Instances {
				p.pool[device(int(i.Worker))]++
			}
			plans = append(plans, p)
		}
		for _, text := range s.Out {
			if m := launched.FindStringSubmatch(text); m != nil {
				id, _ := strconv.Atoi(m[1])
				worker, _ := strconv.Atoi(m[2])
				on[id] = device(worker)
			}
			if m := started.FindStringSubmatch(text); m != nil {
				id, _ := strconv.Atoi(m[2])
				b := placed{at: s.At, device: on[id]}
				b.id, _ = strconv.ParseUint(m[1], 10, 64)
				b.items, _ = strconv.Atoi(m[3])
				out = append(out, b)
			}
		}
	})
	return plans, slices.DeleteFunc(out, func(b placed) bool { return !ended[b.id] })
}

// brought counts the queries of a recorded run that brought so many items.
func brought(t *testing.T, path string, from, to int32) (n int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	arrivals, _, err := workload.ReadArrivals(f, func(string) (serving.AppID, error) { return 0, nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range arrivals {
		if r.Items >= from && r.Items <= to {
			n++
		}
	}
	return n
}

// Kairos over real models on mixed machines: some in this process, others behind another server. It begins without a
// profile, tries what the budget allows of both kinds, learns how fast they are, and rents what serves most for the
// money; each query goes where its size can be served in time for the least, and a price that changes leads to another
// pool.
func TestKairosLive(t *testing.T) {
	needsONNX(t)
	dir := t.TempDir()
	recorded := filepath.Join(dir, "run.journal")
	file := mixed(t, dir)
	server := serve(t, "-f", file, "--journal", recorded)
	until(t, func() bool { return get(server.url()+"/v2/health/ready") == 200 })
	if _, err := os.Stat(filepath.Join(dir, "sluice.profile.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the server has measured its model: %v", err)
	}
	client, err := loadgen.DialGRPC(server.grpc, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	// Of what it does not know it takes machines of all kinds in turn, the cheapest first: 0.08, 0.38, 0.46 $/h.
	trying, learned, repriced := pool{1, 2}, pool{2, 1}, pool{1, 2}
	if got := runs(t, server.admin); got != trying {
		t.Errorf("without knowing anything it rents %v, want %v", got, trying)
	}
	a := &asking{t: t, client: client, random: rand.New(rand.NewPCG(1, 1))}
	t.Cleanup(a.wait.Wait)
	// So many at once that every machine gets one. Otherwise a machine would stay unknown as long as others serve all
	// queries.
	for range 12 {
		a.bring(largest)
	}
	// A second quick machine is worth most, and a cheap one still fits: 0.68 $/h.
	a.count(60)
	a.while(func() bool { return runs(t, server.admin) == learned })
	a.count(80)
	// Quick machines are 0.5 $/h now: there is money for one.
	put(t, "http://"+server.admin+"/prices", `{"device_type": "quick", "price_per_hour": 0.5}`)
	a.while(func() bool { return runs(t, server.admin) == repriced })
	a.wait.Wait()
	// The load generator brings the sizes that the configuration says.
	arrivals := filepath.Join(dir, "run.jsonl")
	status, text, errs := run(t.Context(), "load", "-f", file, "-u", "grpc://"+server.grpc,
		"--request-rate-range", "15", "--duration", "3s", "--record", arrivals, "--json")
	var results []struct {
		Report struct{ Overall struct{ Offered, Served int } }
	}
	if err := json.Unmarshal([]byte(text), &results); err != nil || status != 0 || len(results) != 1 {
		t.Fatalf("load: %d %v %s%s", status, err, text, errs)
	}
	loaded := results[0].Report.Overall
	if loaded.Offered == 0 || loaded.Served != loaded.Offered {
		t.Errorf("load: %d of %d queries were served", loaded.Served, loaded.Offered)
	}

	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	plans, all := history(t, recorded)
	for k, p := range plans {
		t.Logf("%v: plan for %v, %.2f $/h", time.Duration(p.at), p.pool, p.cost)
		if p.cost > mixedBudget*(1+1e-9) {
			t.Errorf("plan %d costs %v $/h, the budget is %v", k, p.cost, mixedBudget)
		}
	}
	if last := plans[len(plans)-1]; last.pool != repriced || last.cost < 0.659 || last.cost > 0.661 {
		t.Errorf("the last plan is for %v at %v $/h, want %v at the new price", last.pool, last.cost, repriced)
	}
	if !slices.ContainsFunc(plans, func(p rented) bool {
		return p.pool == learned && p.cost > 0.679 && p.cost < 0.681
	}) {
		t.Errorf("no plan for %v at the first prices", learned)
	}
	if sent := a.sent + loaded.Offered; len(all) != sent {
		t.Errorf("%d queries were sent, %d ran to their end", sent, len(all))
	}
	if n := brought(t, arrivals, large, largest); n == 0 || n == loaded.Offered {
		t.Errorf("%d of the %d queries of the load generator are large, want some", n, loaded.Offered)
	}
	settled := all[min(72, len(all)):] // latency is known then
	// of counts the queries of a range of sizes and those of them that ran on cheap machines.
	of := func(from, to int) (n, there int) {
		for _, b := range settled {
			if b.items >= from && b.items <= to {
				n++
				if b.device == cheap {
					there++
				}
			}
		}
		return n, there
	}
	smalls, smallsThere := of(1, small)
	larges, largesThere := of(large, largest)
	t.Logf("%d of %d small and %d of %d large queries ran on cheap machines", smallsThere, smalls, largesThere, larges)
	// How many small ones do, or whether any does, depends on how fast the machine of this test is just now: a batch
	// that it interrupts for long teaches that cheap machines are slow, or counts as lost. With given latencies,
	// TestMatchingCarriesMore of sim holds it.
	if smalls < 50 {
		t.Errorf("%d queries were small, want many", smalls)
	}
	if larges < 10 || 5*largesThere > larges {
		t.Errorf("%d of %d large queries ran on cheap machines, which cannot serve them in time", largesThere, larges)
	}
	if status, out, errs := run(t.Context(), "replay", recorded); status != 0 ||
		!strings.Contains(out, "all the same") {
		t.Errorf("replay: %d %s%s", status, out, errs)
	}
}
