package test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/internal/models/digits"
	"github.com/sluice-serving/sluice/serving/report"
)

var (
	unsureVariants = flag.String("unsure-variants", "medium,small,tiny", "variants of TestEasyAndHardQueries")
	unsurePictures = flag.Int("unsure-pictures", 400, "pictures with which it measures confidence")
	unsureRates    = flag.String("unsure-rates", "", "its rates, in queries/s, with commas between them; empty is one "+
		"that the best variant alone does not carry")
	unsureSeconds = flag.Float64("unsure-seconds", 3, "of arrivals, for each rate")
)

// classifiers is variants of a classifier in a model repository, the most accurate first, and two folders of labelled
// samples: those that confidence is measured on, and those that are sent.
type classifiers struct {
	app            string
	variants       []string
	dir            string // of the repository, models
	measured, sent string
	slo            string
}

// write writes the configuration of a ladder on one core.
func (l *classifiers) write(t *testing.T, system string) string {
	t.Helper()
	var b strings.Builder
	for _, v := range l.variants {
		fmt.Fprintf(&b, "      - {name: %s, max_batch: 16}\n", v)
	}
	return write(t, l.dir, "sluice.yaml", "version: 1\nsystem: %s\ndevice_types: [{name: core, cores: 1}]\n"+
		"workers: [{name: here, device_type: core}]\nmodels: {repository: models}\nprofiles: [profile.json]\napps:\n"+
		"  - name: %s\n    slo: {latency: %s}\n    queue_limit: 2000\n    variants:\n%s", system, l.app, l.slo, &b)
}

// A ladder of real classifiers, from labelled pictures to answers of which the unsure ones are improved: confidence is
// measured, the server says how sure the first variant was, and counts second answers; without cascades there is none.
// With -unsure-variants xlarge,large,medium,small,tiny -unsure-pictures 4000 -unsure-rates 160,240,320,480
// -unsure-seconds 10 -v it prints what docs/cascades.md has.
func TestEasyAndHardQueries(t *testing.T) {
	needsONNX(t)
	dir := t.TempDir()
	trained, err := digits.Trained(digits.Pictures)
	if err != nil {
		t.Fatal(err)
	}
	if err := trained.Write(filepath.Join(dir, "models")); err != nil {
		t.Fatal(err)
	}
	l := &classifiers{app: "digits", dir: dir, slo: "100ms", measured: filepath.Join(dir, "measured"),
		sent: filepath.Join(dir, "sent"), variants: strings.Split(*unsureVariants, ",")}
	for seed, folder := range map[uint64]string{77: l.measured, 78: l.sent} {
		if err := digits.WriteSamples(folder, seed, *unsurePictures); err != nil {
			t.Fatal(err)
		}
	}
	l.compare(t)
}

// compare measures the ladder, and serves it under loads with second answers and without.
func (l *classifiers) compare(t *testing.T) {
	t.Helper()
	file := l.write(t, "sluice")
	profile := filepath.Join(l.dir, "profile.json")
	for _, args := range [][]string{{"--max-time", "150ms"}, {"--samples", l.measured}} {
		args = append([]string{"profile", "-f", file, "-o", profile}, args...)
		status, out, errs := run(t.Context(), args...)
		if status != 0 {
			t.Fatalf("%v: %d %s %s", args, status, out, errs)
		}
		if _, found, ok := strings.Cut(out, "How accurate"); ok {
			t.Log(found)
		}
	}
	p, err := profiler.ReadFile(profile)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Confidences) != len(l.variants)-1 {
		t.Fatalf("confidences of %d variants, want of all %d but the most accurate", len(p.Confidences),
			len(l.variants))
	}
	if *unsureRates != "" {
		l.calibrated(t, file, p)
	}
	rates := strings.Split(*unsureRates, ",")
	if *unsureRates == "" {
		for _, x := range p.Points {
			if x.Variant == l.variants[0] && x.Batch == 1 && x.Concurrency == 1 {
				rates = []string{strconv.Itoa(int(1.4e6 / x.Mean))}
			}
		}
	}
	for _, rate := range rates {
		for _, system := range []string{"sluice", "sluice-without-cascades"} {
			l.serve(t, l.write(t, system), system, rate)
		}
	}
}

// calibrated logs how far the accuracies that a profile says of cascades are from those on the samples that are sent:
// for each two variants, and each share of the queries that goes on.
func (l *classifiers) calibrated(t *testing.T, file string, measured *profiler.File) {
	t.Helper()
	out := filepath.Join(l.dir, "held.json")
	if err := measured.WriteFile(out); err != nil {
		t.Fatal(err)
	}
	if status, _, errs := run(t.Context(), "profile", "-f", file, "-o", out, "--samples", l.sent); status != 0 {
		t.Fatal(errs)
	}
	held, err := profiler.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	said, seen := cascades(measured), cascades(held)
	sum, most, within, n := 0.0, 0.0, 0, 0
	for key, x := range said {
		y, ok := seen[key]
		if !ok {
			continue
		}
		apart := math.Abs(x - y)
		n, sum, most = n+1, sum+apart, max(most, apart)
		if apart <= 0.005 {
			within++
		}
	}
	t.Logf("of %d cascades the accuracy that was measured and that on other samples are within 0.5 points in %d, "+
		"%.2f points apart in the mean and %.2f at most", n, within, 100*sum/float64(n), 100*most)
}

// cascades returns the accuracy of every cascade of a profile, by its variants and the share that goes on.
func cascades(f *profiler.File) map[string]float64 {
	out := make(map[string]float64)
	for k := range f.Confidences {
		for _, x := range f.Confidences[k].Cascades() {
			out[fmt.Sprintf("%s, %s for %.2f", x.First, x.Second, x.Share)] = x.Accuracy
		}
	}
	return out
}

// serve serves the ladder under a load, and logs what came of it beside what is simulated.
func (l *classifiers) serve(t *testing.T, file, system, rate string) {
	t.Helper()
	seconds := strconv.FormatFloat(*unsureSeconds, 'f', -1, 64) + "s"
	load := []string{"-f", file, "--request-rate-range", rate, "--duration", seconds, "--json"}
	overall := func(args ...string) *report.Summary {
		status, out, errs := run(t.Context(), args...)
		if status != 0 {
			t.Fatalf("%v: %d %s %s", args, status, out, errs)
		}
		var list []struct {
			report.Report
			Live *report.Report `json:"report"`
		}
		if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 1 {
			t.Fatalf("%v: %v: %.200s", args, err, out)
		}
		if list[0].Live != nil {
			return &list[0].Live.Overall
		}
		return &list[0].Overall
	}
	simulated := overall(append([]string{"simulate", "--no-bound"}, load...)...)
	c := serve(t, "-f", file, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	base := c.url()
	until(t, func() bool { return get(base+"/v2/health/ready") == 200 })
	live := overall(append([]string{"load", "-u", "grpc://" + c.grpc, "--samples", l.sent}, load...)...)
	all, second := unsureCounts(t, "http://"+c.admin+"/metrics")
	confidence := l.saysConfidence(t, base)
	// How many answers are second ones depends on how fast this machine is.
	if cascades := system == "sluice"; cascades != (all > 0) || confidence && !cascades {
		t.Errorf("%s: an answer has a confidence: %v; %v answers whose variant knows how sure it is", system,
			confidence, all)
	}
	if live.EffectiveAccuracy == nil || live.MeasuredAccuracy == nil || simulated.EffectiveAccuracy == nil {
		t.Fatalf("%s at %s queries/s: no accuracy", system, rate)
	}
	t.Logf("%s at %s queries/s: simulated accuracy %.4f, %.2f %% late; live %.4f, by labels %.4f, %.2f %% late, %v "+
		"second answers to %d queries", system, rate, *simulated.EffectiveAccuracy, 100*simulated.ViolationRatio,
		*live.EffectiveAccuracy, *live.MeasuredAccuracy, 100*live.ViolationRatio, second, live.Offered)
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
}

// saysConfidence sends the first sample, and reports whether the answer says how sure its variant was.
func (l *classifiers) saysConfidence(t *testing.T, base string) bool {
	t.Helper()
	var about struct {
		Inputs []struct {
			Name     string `json:"name"`
			DataType string `json:"datatype"`
			Shape    []int  `json:"shape"`
			File     string `json:"file"`
		} `json:"inputs"`
	}
	text, err := os.ReadFile(filepath.Join(l.sent, "samples.json"))
	if err == nil {
		err = json.Unmarshal(text, &about)
	}
	if err != nil {
		t.Fatal(err)
	}
	in := about.Inputs[0]
	raw, err := os.ReadFile(filepath.Join(l.sent, in.File))
	if err != nil {
		t.Fatal(err)
	}
	values := make([]int, 1)
	for _, n := range in.Shape {
		values = make([]int, len(values)*n)
	}
	for k := range values {
		if in.DataType == "INT32" {
			values[k] = int(int32(binary.LittleEndian.Uint32(raw[4*k:])))
		} else {
			values[k] = int(raw[k])
		}
	}
	body, err := json.Marshal(map[string]any{"inputs": []map[string]any{{
		"name": in.Name, "datatype": in.DataType, "shape": append([]int{1}, in.Shape...), "data": values,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.Post(base+"/v2/models/"+l.app+"/infer", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, _ = io.ReadAll(r.Body)
	var answer struct{ Parameters struct{ Confidence *float64 } }
	if err := json.Unmarshal(text, &answer); err != nil || r.StatusCode != 200 {
		t.Fatalf("%d %s %v", r.StatusCode, text, err)
	}
	return answer.Parameters.Confidence != nil
}

// unsureCounts is how many answers of variants that know how sure they are a server has given, and how many of those
// were second ones.
func unsureCounts(t *testing.T, metrics string) (all, second float64) {
	t.Helper()
	r, err := http.Get(metrics)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(r.Body)
	series := regexp.MustCompile(`(?m)^sluice_sure_answers_total\{answer="(.*?)".*\} (\S+)$`)
	for _, m := range series.FindAllStringSubmatch(string(text), -1) {
		x, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		if all += x; m[1] == "better" {
			second += x
		}
	}
	return all, second
}
