package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/internal/models/repository"
)

// ladderFile is a file in a repository that marks its models as variants of one task.
const ladderFile = "ladder.json"

// ladder is the content of that file.
type ladder struct {
	Task     string       `json:"task"` // name of the app
	Variants []ladderStep `json:"variants"`
}

type ladderStep struct {
	Name     string  `json:"name"` // of the model
	Accuracy float64 `json:"accuracy"`
}

// machine describes the computer that Init runs on.
type machine struct {
	cores  int
	memory Size // 0 when not known
}

// Init returns a commented sluice.yaml for the models of a repository. With a ladder.json ({"task": NAME, "variants":
// [{"name": MODEL, "accuracy": A}, ...]}) it has one app with all of them, otherwise one app for each. The one worker
// is this machine. If repo is relative, the result must be saved in the current directory.
//
// Models that cannot be served are left out. notes name them, and the settings of the others that nothing here follows;
// the file has them as remarks.
func Init(repo string, found Found) (text []byte, notes []string, err error) {
	return initFor(repo, found, machine{cores: runtime.NumCPU(), memory: totalMemory()})
}

// Found is what running the models of a repository has shown. It is zero where they were not run.
type Found struct {
	Objectives map[string]time.Duration // latency objectives, by app; other apps get one that is not thought of
	Broken     map[string]string        // models that cannot be loaded, with the reason
}

func initFor(dir string, found Found, m machine) ([]byte, []string, error) {
	objectives := found.Objectives
	repo, err := repository.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = repo.Close() }()
	models, failed := repo.Models()
	var notes []string
	if failed != nil {
		for _, line := range strings.Split(failed.Error(), "\n") {
			notes = append(notes, line+": it is left out")
		}
	}
	if len(models) == 0 {
		return nil, nil, errors.Join(fmt.Errorf("model repository %s holds no models that can be served: %s", dir,
			cmp.Or(repo.Misplaced(), "want MODEL/VERSION/model.onnx")), failed)
	}
	steps, err := readLadder(repo, models)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(found.Broken)) {
		notes = append(notes, fmt.Sprintf("model %q: %s: it is left out", name, found.Broken[name]))
	}
	broken := func(name string) bool { _, is := found.Broken[name]; return is }
	models = slices.DeleteFunc(models, func(m *repository.Model) bool { return broken(m.Name) })
	if steps != nil {
		steps.Variants = slices.DeleteFunc(steps.Variants, func(s ladderStep) bool { return broken(s.Name) })
	}
	for _, model := range models {
		for _, u := range model.Unknown {
			notes = append(notes, fmt.Sprintf("model %q: config.pbtxt: %s is not read", model.Name, u))
		}
		for _, w := range model.Warnings {
			notes = append(notes, fmt.Sprintf("model %q: config.pbtxt: %s", model.Name, w))
		}
		if queueOf(model.Config.DynamicBatching) != nil {
			notes = append(notes, fmt.Sprintf(queueNotApplied, model.Name))
		}
	}
	var b bytes.Buffer
	writeHead(&b, dir, notes, m)
	if steps != nil {
		writeLadder(&b, steps, models, objectives)
	} else {
		for _, model := range models {
			writeApp(&b, model.Name, []ladderStep{{Name: model.Name, Accuracy: 1}}, models, false, objectives)
		}
	}
	b.WriteString(initTail)
	// The written file must be readable: a name in the repository may be one that no app can have.
	if _, err := Parse(b.Bytes(), "sluice.yaml"); err != nil {
		return nil, nil, fmt.Errorf("the models of %s do not make a valid configuration: %w", dir, err)
	}
	return b.Bytes(), notes, nil
}

// writeNotes writes what is left out as remarks.
func writeNotes(b *bytes.Buffer, notes []string) {
	if len(notes) == 0 {
		return
	}
	b.WriteString("#\n# What has no counterpart, or means something else here:\n")
	for _, n := range notes {
		fmt.Fprintf(b, "#   - %s\n", strings.Join(strings.FieldsFunc(n, func(r rune) bool {
			return r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029
		}), " "))
	}
}

// readLadder returns the content of ladder.json, or nil when there is none.
func readLadder(repo *repository.Repository, models []*repository.Model) (*ladder, error) {
	data, err := repo.ReadFile(ladderFile, MaxBytes)
	if errors.Is(err, repository.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var l ladder
	if err := json.Unmarshal(data, &l); err != nil {
		return nil, fmt.Errorf("%s in %s: %w", ladderFile, repo.Dir(), err)
	}
	if l.Task == "" || len(l.Variants) == 0 {
		return nil, fmt.Errorf(`%s in %s: want {"task": NAME, "variants": [{"name": MODEL, "accuracy": A}, ...]}`,
			ladderFile, repo.Dir())
	}
	for i, v := range l.Variants {
		if !slices.ContainsFunc(models, func(m *repository.Model) bool { return m.Name == v.Name }) {
			return nil, fmt.Errorf("%s in %s: variants[%d]: there is no model %q", ladderFile, repo.Dir(), i, v.Name)
		}
	}
	return &l, nil
}

func writeLadder(b *bytes.Buffer, l *ladder, models []*repository.Model, objectives map[string]time.Duration) {
	writeApp(b, l.Task, l.Variants, models, true, objectives)
	var rest []string
	for _, m := range models {
		if !slices.ContainsFunc(l.Variants, func(v ladderStep) bool { return v.Name == m.Name }) {
			rest = append(rest, m.Name)
		}
	}
	if len(rest) > 0 {
		fmt.Fprintf(b, "  # Not in %s, so not served: %s\n", ladderFile, strings.Join(rest, ", "))
	}
}

func writeHead(b *bytes.Buffer, dir string, notes []string, m machine) {
	b.WriteString(`# What sluice serves, where, and how fast it has to be.
# docs/configuration.md explains every setting; check this file with ` + "`sluice config check`" + `.
`)
	writeNotes(b, notes)
	b.WriteString(`version: 1

# Kinds of machine. Prices are in $/h; plans that rent machines compare them.
device_types:
  - name: local
    price_per_hour: 0
`)
	fmt.Fprintf(b, "    cores: %d\n", max(1, m.cores))
	if m.memory > 0 {
		fmt.Fprintf(b, "    memory: %s\n", m.memory)
	}
	fmt.Fprintf(b, `
# The machines. This one runs the models itself; kind: openinference stands in front of a server that runs already.
workers:
  - name: here
    device_type: local
    backend: {kind: onnx}

# Models lie here as MODEL/VERSION/model.onnx, with an optional config.pbtxt.
models:
  repository: %s

# Measured latencies. Write this file with `+"`sluice profile`"+` and take the mark away.
# profiles: [profile.json]

# Who decides. Either the name of a system (`+"`sluice systems`"+` lists them), or a router and a batcher such as
# {router: weighted, batcher: adaptive}.
system: sluice

# What clients call, by name, with the latency objective of each.
apps:
`, quote(dir))
}

func writeApp(b *bytes.Buffer, name string, steps []ladderStep, models []*repository.Model, measured bool,
	objectives map[string]time.Duration) {
	fmt.Fprintf(b, "  - name: %s\n", quote(name))
	fmt.Fprintf(b, "    slo: %s\n", proposedSLO(Duration(objectives[name])))
	b.WriteString(`    late: serve-late    # or drop, once the objective is yours
    queue_limit: 1000   # waiting queries, before new ones are refused
    variants:
`)
	for _, s := range steps {
		i := slices.IndexFunc(models, func(m *repository.Model) bool { return m.Name == s.Name })
		m := models[i]
		fmt.Fprintf(b, "      - name: %s\n", quote(s.Name))
		note := ""
		if !measured {
			note = "   # not known: write what you measured, in [0, 1]"
		}
		fmt.Fprintf(b, "        accuracy: %s%s\n", strconv.FormatFloat(s.Accuracy, 'f', -1, 64), note)
		if m.MaxBatch > 0 {
			fmt.Fprintf(b, "        max_batch: %d\n", m.MaxBatch)
		} else {
			b.WriteString("        max_batch: 1   # the model has no batch dimension\n")
		}
	}
}

// proposedSLO writes an objective that nobody asked for: one that follows from measurements, or, where there are none,
// one to begin with.
func proposedSLO(d Duration) string {
	if d > 0 {
		return fmt.Sprintf("{latency: %v, proposed: true}   # from measured latencies: write yours", d)
	}
	return "{latency: 100ms, proposed: true}   # not measured: write yours"
}

const initTail = `
# Where clients are answered.
server:
  http: "` + DefaultHTTP + `"
  grpc: "` + DefaultGRPC + `"
  admin: ` + DefaultAdmin + `   # metrics and administration: this machine only
`

// quote writes a text so that YAML reads it as the same text.
func quote(s string) string {
	plain := s != ""
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_' || r == '/' || r == '.'
		plain = plain && (letter || i > 0 && (r >= '0' && r <= '9' || r == '-'))
	}
	switch strings.ToLower(s) {
	case "null", "true", "false", "yes", "no", "on", "off", "y", "n", ".inf", ".nan":
		plain = false
	}
	if plain {
		return s
	}
	// JSON's form of a text is one of YAML's.
	j, _ := json.Marshal(s)
	return string(j)
}

// totalMemory returns the machine's memory, or 0 when unknown.
func totalMemory() Size {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemTotal:" {
			kib, _ := strconv.ParseInt(f[1], 10, 64)
			return Size(kib / 1024 << 20) // in whole MiB, for the eye
		}
	}
	return 0
}
