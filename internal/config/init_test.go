package config

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestInitMakesOneAppOfALadder(t *testing.T) {
	root := t.TempDir()
	model(t, root, "digits-s/1", -1, 3)
	model(t, root, "digits-l/1", -1, 3)
	model(t, root, "other/1", 1, 3)
	write(t, root, "models/digits-l/config.pbtxt", "max_batch_size: 16")
	write(t, root, "models/ladder.json",
		`{"task":"digits","seed":1,"variants":[{"name":"digits-s","accuracy":0.8125,"bytes":3},{"name":"digits-l",`+
			`"accuracy":0.99}]}`)
	t.Chdir(root)
	out, _, err := initFor("models", Found{}, machine{cores: 2, memory: 8 << 30})
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir()) // the file's own directory counts, not the process's
	w, err := resolve(t, root, string(out))
	if err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	s := w.Spec
	if len(s.Apps) != 1 || s.Apps[0].Name != "digits" || len(s.Variants) != 2 || s.Variants[0].Accuracy != 0.8125 ||
		s.Variants[1].MaxBatch != 16 || s.DeviceTypes[0].Cores != 2 || s.DeviceTypes[0].MemoryBytes != 8<<30 {
		t.Errorf("spec %+v", s)
	}
	if !bytes.Contains(out, []byte("# Not in ladder.json, so not served: other")) {
		t.Errorf("the model left out is not named in\n%s", out)
	}
	for _, bad := range []string{"{", "{}", `{"task":"t","variants":[{"name":"absent","accuracy":1}]}`} {
		write(t, root, "models/ladder.json", bad)
		if _, _, err := Init(filepath.Join(root, "models"), Found{}); err == nil ||
			!strings.Contains(err.Error(), "ladder.json") {
			t.Errorf("ladder.json %s: error %v", bad, err)
		}
	}
}

func TestInitMakesOneAppForEachModel(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"a", "12", "yes", `we"ird: #name`, "ü"} {
		model(t, root, name+"/1", -1, 3)
	}
	model(t, root, "fixed/1", 1, 3)
	out, _, err := Init(filepath.Join(root, "models"), Found{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := resolve(t, t.TempDir(), string(out))
	if err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	if len(w.Spec.Apps) != 6 {
		t.Errorf("%d apps in\n%s", len(w.Spec.Apps), out)
	}
	for i, a := range w.Spec.Apps {
		if w.Variants[i].Model != a.Name || w.Variants[i].Path == "" || w.Spec.DeviceTypes[0].Cores < 1 {
			t.Errorf("app %q: %+v", a.Name, w.Variants[i])
		}
	}
	if _, _, err := Init(t.TempDir(), Found{}); err == nil || !strings.Contains(err.Error(), "holds no models") {
		t.Errorf("empty repository: %v", err)
	}
	if _, _, err := Init(filepath.Join(root, "absent"), Found{}); err == nil {
		t.Error("absent repository")
	}
}

// What cannot be served is left out by name, what is not followed is said, and the rest goes on.
func TestInitLeavesOutWhatCannotBeServed(t *testing.T) {
	root := t.TempDir()
	model(t, root, "good/1", -1, 3)
	write(t, root, "models/good/config.pbtxt", `max_batch_size: 4
parameters {key: "threads" value: {string_value: "2"}} response_cache {enable: true}`)
	write(t, root, "models/python/config.pbtxt", `backend: "python"`)
	write(t, root, "models/python/1/model.py", "")
	write(t, root, "models/broken/1/model.onnx", "no model")
	model(t, root, "unknown/1", -1, 3)
	out, notes, err := Init(filepath.Join(root, "models"), Found{
		Objectives: map[string]time.Duration{"good": 200 * time.Millisecond},
		Broken:     map[string]string{"unknown": "no such operator"},
	})
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(notes, "\n")
	for _, want := range []string{
		`model "python"`, `model "broken"`, "no such operator", "left out", `parameters ["threads"]`, "response_cache",
	} {
		if !strings.Contains(all, want) || !strings.Contains(string(out), want) {
			t.Errorf("%q is not said: %s\n%s", want, all, out)
		}
	}
	w, err := resolve(t, root, string(out))
	if err != nil || len(w.Spec.Apps) != 1 || w.Spec.Apps[0].SLO.Latency != 200*time.Millisecond {
		t.Errorf("%v in\n%s", err, out)
	}
}
