package config

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
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
	out, err := initFor("models", machine{cores: 2, memory: 8 << 30})
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
		if _, err := Init(filepath.Join(root, "models")); err == nil || !strings.Contains(err.Error(), "ladder.json") {
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
	out, err := Init(filepath.Join(root, "models"))
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
	if _, err := Init(t.TempDir()); err == nil || !strings.Contains(err.Error(), "holds no models") {
		t.Errorf("empty repository: %v", err)
	}
	if _, err := Init(filepath.Join(root, "absent")); err == nil {
		t.Error("absent repository")
	}
}
