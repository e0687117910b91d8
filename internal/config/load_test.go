package config

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/bounded"
)

var update = flag.Bool("update", false, "write the golden files and docs/configuration.md anew")

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test ./internal/config -update writes it anew); got:\n%s", path, got)
	}
}

func TestMessages(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < 9 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Parse(data, filepath.Base(path))
		var p Problems
		if !errors.As(err, &p) {
			t.Errorf("%s: error %v, want Problems", path, err)
			continue
		}
		golden(t, strings.TrimSuffix(path, ".yaml")+".txt", err.Error()+"\n")
	}
}

const small = `version: 1
device_types: [{name: local}]
workers: [{name: here, backend: {kind: fake}}]
apps:
  - {name: a, slo: {latency: 50ms}, variants: [{model: m}]}
`

func TestDefaults(t *testing.T) {
	f, err := Parse([]byte(small), "dir/sluice.yaml")
	if err != nil {
		t.Fatal(err)
	}
	a := f.Apps[0]
	if a.Late != "drop" || a.Weight != 1 || a.QueueLimit != 1000 || a.SLO.Percentile != 99 ||
		a.Variants[0].Name != "m" || a.Variants[0].Accuracy != 1 {
		t.Errorf("app %+v", a)
	}
	if s := f.SystemOf(0); s.Name != "sluice" || s.Router != "" || s.Late != "drop" {
		t.Errorf("system %+v", s)
	}
	if w := f.Workers[0]; w.Count != 1 || w.DeviceType != "local" || f.DeviceTypes[0].Cores != 1 {
		t.Errorf("worker %+v", w)
	}
	if s := f.Server; s.HTTP != ":8000" || s.Limits.Request != 64<<20 ||
		time.Duration(s.DrainTimeout) != 30*time.Second {
		t.Errorf("server %+v", s)
	}
	if f.Path("x") != filepath.Join("dir", "x") || f.Path("/x") != "/x" || f.Path("") != "" {
		t.Errorf("paths %q %q", f.Path("x"), f.Path("/x"))
	}
}

// Late answers are served under an objective that nobody asked for, unless somebody asked that they are not.
func TestLatePolicyOfProposedObjectives(t *testing.T) {
	for change, want := range map[string]string{
		"slo: {latency: 50ms}":                                                     "drop",
		"slo: {latency: 50ms, proposed: true}":                                     "serve-late",
		"late: drop, slo: {latency: 50ms, proposed: true}":                         "drop",
		"system: {name: sluice, late: drop}, slo: {latency: 50ms, proposed: true}": "drop",
		"system: {name: sluice}, slo: {latency: 50ms, proposed: true}":             "serve-late",
		"slo: {latency: 50ms, proposed: true}, give_up: 1s":                        "serve-late",
		"late: serve-late, slo: {latency: 50ms}":                                   "serve-late",
	} {
		f, err := Parse([]byte(strings.Replace(small, "slo: {latency: 50ms}", change, 1)), "sluice.yaml")
		if err != nil {
			t.Fatalf("%s: %v", change, err)
		}
		if f.Apps[0].Late != want {
			t.Errorf("%s: late %q, want %q", change, f.Apps[0].Late, want)
		}
	}
	proposed := strings.Replace(small, "50ms}", "50ms, proposed: true}", 1)
	f, err := Parse([]byte("system: {late: drop}\n"+proposed), "x.yaml")
	if err != nil || f.Apps[0].Late != "drop" {
		t.Errorf("with a policy for all: %v, %v", f.Apps[0].Late, err)
	}
}

func TestSystemForms(t *testing.T) {
	f, err := Parse([]byte("system: {name: proteus, late: serve-late, options: {beta: 1.05}}\n"+strings.Replace(small,
		"{name: a,", "{name: a, system: clipper-ht,", 1)), "x.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if f.System.Name != "proteus" || f.System.Options["beta"] != "1.05" || f.SystemOf(0).Name != "clipper-ht" ||
		f.Apps[0].Late != "serve-late" {
		t.Errorf("systems %+v, app %+v", f.System, f.Apps[0])
	}
	if err := f.CheckNames(Names{}); err != nil {
		t.Errorf("nothing to check against: %v", err)
	}
	err = f.CheckNames(Names{Systems: []string{"proteus", "clipper-ha"}})
	if want := `x.yaml:6: apps[0].system.name: there is no system "clipper-ht" (did you mean "clipper-ha"?)`; err ==
		nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	f, err = Parse([]byte("system: {router: wighted, batcher: x, planner: p, scaler: s}\n"+small), "x.yaml")
	if err != nil {
		t.Fatal(err)
	}
	err = f.CheckNames(Names{
		Routers: []string{"weighted", "fcfs"}, Batchers: []string{"single"}, Planners: []string{},
		Scalers: []string{"s"},
	})
	if want := `x.yaml:1: system.router: there is no router "wighted" (did you mean "weighted"?)
x.yaml:1: system.batcher: there is no batcher "x": there is single
x.yaml:1: system.planner: there is no planner "p": there is nothing`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestSettingsThatNothingUsesAreReported(t *testing.T) {
	f, err := Parse([]byte("system: {name: s, batch: 4, slack: 1ms, options: {beta: 1, gama: 2}}\n"+small), "x.yaml")
	if err != nil {
		t.Fatal(err)
	}
	err = f.CheckNames(Names{Settings: []string{"batch", "timeout", "options.gamma"}})
	if want := `x.yaml:1: system.slack: no system here uses this setting
x.yaml:1: system.options.beta: no system here uses this setting
x.yaml:1: system.options.gama: no system here uses this setting (did you mean "gamma"?)`; err == nil ||
		err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if err := f.CheckNames(Names{Settings: []string{"batch", "slack", "options.beta", "options.gama"}}); err != nil {
		t.Error(err)
	}
	f, err = Parse([]byte("system: {name: s, options: {batch: 4}}\n"+small), "x.yaml")
	if err != nil {
		t.Fatal(err)
	}
	err = f.CheckNames(Names{Settings: []string{"batch"}})
	if want := "x.yaml:1: system.options.batch: no system here uses this setting: batch stands beside options, not " +
		"in it"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// A setting that the system refuses is reported at its path: in the system or in its options, the file's or an app's.
// Unknown names are reported first.
func TestSettingsThatTheSystemRefusesAreReported(t *testing.T) {
	text := strings.Replace("system:\n  name: s\n  batch: 4\n  options:\n    gama: 2\n"+small, "{name: a, ",
		"{name: a, system: {name: u, options: {gama: 3}}, ", 1)
	f, err := Parse([]byte(text), "x.yaml")
	if err != nil {
		t.Fatal(err)
	}
	names := Names{Systems: []string{"s", "u"}, Refused: func(s System) map[string]string {
		return map[string]string{"batch": "is of no use to " + s.Name, "options.gama": "is " + s.Options["gama"]}
	}}
	want := `x.yaml:3: system.batch: is of no use to s
x.yaml:5: system.options.gama: is 2
x.yaml:10: apps[0].system.batch: is of no use to u
x.yaml:10: apps[0].system.options.gama: is 3`
	if err := f.CheckNames(names); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	names.Systems = []string{"s"}
	if err := f.CheckNames(names); err == nil || strings.Contains(err.Error(), "apps[0].system.batch") {
		t.Errorf("a system that does not exist: %v", err)
	}
}

func TestAliasesAreBounded(t *testing.T) {
	// Aliases share settings.
	f, err := Parse([]byte(strings.Replace(small, "{name: a, slo: {latency: 50ms}",
		"{name: z, slo: &s {latency: 50ms}, variants: [{name: v}]}\n  - {name: a, slo: *s", 1)), "x.yaml")
	if err != nil || f.Apps[1].SLO.Latency != f.Apps[0].SLO.Latency || f.Apps[1].SLO.Latency == 0 {
		t.Errorf("alias: %v", err)
	}
	// An expansion that would exhaust memory is refused.
	var b strings.Builder
	b.WriteString("version: 1\nprofiles: &l [" + strings.Repeat("x,", 5000) + "]\nplacement:\n")
	b.WriteString("  - &p {worker: w, variants: *l}\n" + strings.Repeat("  - *p\n", 500))
	if _, err := Parse([]byte(b.String()), "x.yaml"); err == nil ||
		!strings.Contains(err.Error(), "more than 200000 values") {
		t.Errorf("alias bomb: %.200v", err)
	}
	if _, err := Parse([]byte(strings.Repeat("#", MaxBytes+1)), "x.yaml"); err == nil ||
		!strings.Contains(err.Error(), "larger than the limit") {
		t.Errorf("size: %v", err)
	}
}

func TestLoadErrors(t *testing.T) {
	if _, err := Load(filepath.Join(t.TempDir(), "absent.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent file: %v", err)
	}
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("a directory was read")
	}
	var all Problems
	for range maxShown + 3 {
		all = append(all, Problem{File: "f", Text: "t"})
	}
	if s := all.Error(); !strings.HasSuffix(s, "f: t\nand 3 more") {
		t.Errorf("long list: %s", s)
	}
}

func TestScalars(t *testing.T) {
	for in, want := range map[string]Size{
		"0": 0, "17": 17, "512MiB": 512 << 20, "8 GiB": 8 << 30, "2GB": 2e9, "1.5KiB": 1536, "3B": 3, "1TiB": 1 << 40,
		"1kB": 1000,
	} {
		var s Size
		if err := s.parse(in); err != nil || s != want {
			t.Errorf("size %q = %d, %v, want %d", in, s, err, want)
		}
		var back Size
		if err := back.parse(s.String()); err != nil || back != s {
			t.Errorf("size %q is written %q, which reads %d, %v", in, s.String(), back, err)
		}
	}
	for _, in := range []string{"", "GiB", "-1", "1e30", "1e999", "NaN", "Inf", "1XB", "4611686018427387904"} {
		var s Size
		if err := s.parse(in); err == nil {
			t.Errorf("size %q = %d, want an error", in, s)
		}
	}
	for _, in := range []string{"", "5", "-5ms", "5 ms", "1e400s", "99999999h"} {
		var d Duration
		if err := d.parse(in); err == nil {
			t.Errorf("duration %q = %v, want an error", in, d)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/bad/*.yaml", "../../examples/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatal(pattern, err)
		}
		for _, path := range files {
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Add([]byte(small))
	f.Add([]byte(scenesFile))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer bounded.Watch(t, bounded.Fuzz(len(data)))()
		file, err := Parse(data, "x.yaml")
		if (err == nil) != (file != nil) {
			t.Fatalf("file %v, err %v", file, err)
		}
		if err != nil {
			var p Problems
			if !errors.As(err, &p) || len(p) == 0 || strings.Contains(err.Error(), "%!") &&
				!bytes.Contains(data, []byte("%!")) {
				t.Fatalf("error %v", err)
			}
			for _, x := range p {
				if x.Line < 1 {
					t.Fatalf("without a line: %v", x)
				}
			}
			return
		}
		// A file without problems makes a valid spec whenever it needs no other files.
		file.Models.Repository = ""
		if _, err := file.Resolve(); err != nil {
			var p Problems
			if !errors.As(err, &p) {
				t.Fatalf("Resolve of a file that was accepted: %v", err)
			}
		}
	})
}
