package test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// mustJudge makes a missing package of the clients a failure. CI sets it.
const mustJudge = "SLUICE_CLIENTS"

// judgedModels writes the repository that test/clients/python and test/clients/node call.
func judgedModels(t *testing.T, root string) {
	t.Helper()
	const n = onnxmodel.Symbolic
	put := func(name, config string, g *onnxmodel.Graph) {
		if err := g.Write(filepath.Join(root, name, "1", "model.onnx")); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(root, name), "config.pbtxt", "%s", config)
	}
	put("simple", `max_batch_size: 8
input [ { name: "INPUT0" data_type: TYPE_INT32 dims: 16 }, { name: "INPUT1" data_type: TYPE_INT32 dims: 16 } ]
output [ { name: "OUTPUT0" data_type: TYPE_INT32 dims: 16 }, { name: "OUTPUT1" data_type: TYPE_INT32 dims: 16 } ]`,
		onnxmodel.NewGraph("g").Input("INPUT0", onnxmodel.Int32, n, 16).Input("INPUT1", onnxmodel.Int32, n, 16).
			Node("Add", []string{"INPUT0", "INPUT1"}, []string{"OUTPUT0"}).
			Node("Sub", []string{"INPUT0", "INPUT1"}, []string{"OUTPUT1"}).
			Output("OUTPUT0", onnxmodel.Int32, n, 16).Output("OUTPUT1", onnxmodel.Int32, n, 16))
	put("strings", `max_batch_size: 8
input { name: "INPUT0" data_type: TYPE_STRING dims: -1 } output { name: "OUTPUT0" data_type: TYPE_STRING dims: -1 }`,
		onnxmodel.NewGraph("g").Input("INPUT0", onnxmodel.String, n, n).
			Node("Identity", []string{"INPUT0"}, []string{"OUTPUT0"}).Output("OUTPUT0", onnxmodel.String, n, n))
	put("scores", `max_batch_size: 8 input { name: "x" data_type: TYPE_FP32 dims: 3 }
output { name: "y" data_type: TYPE_FP32 dims: 3 label_filename: "labels.txt" }`,
		onnxmodel.NewGraph("g").Input("x", onnxmodel.Float32, n, 3).
			Node("Identity", []string{"x"}, []string{"y"}).Output("y", onnxmodel.Float32, n, 3))
	write(t, filepath.Join(root, "scores"), "labels.txt", "dog\ncat\nfox\n")
	// The sum of a sequence: what came before is a state, and counts unless the sequence begins.
	put("adding", `max_batch_size: 8
input { name: "x" data_type: TYPE_INT32 dims: 1 } output { name: "y" data_type: TYPE_INT32 dims: 1 }
sequence_batching {
  control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }
  state { input_name: "before" output_name: "after" data_type: TYPE_INT32 dims: 1 }
}`,
		onnxmodel.NewGraph("g").Input("x", onnxmodel.Int32, n, 1).Input("START", onnxmodel.Int32, n, 1).
			Input("before", onnxmodel.Int32, n, 1).InitializerRaw("one", onnxmodel.Int32, []byte{1, 0, 0, 0}, 1).
			Node("Sub", []string{"one", "START"}, []string{"goes on"}).
			Node("Mul", []string{"before", "goes on"}, []string{"kept"}).
			Node("Add", []string{"x", "kept"}, []string{"y"}).Node("Identity", []string{"y"}, []string{"after"}).
			Output("y", onnxmodel.Int32, n, 1).Output("after", onnxmodel.Int32, n, 1))
	put("slow", `max_batch_size: 1
input { name: "x" data_type: TYPE_FP32 dims: 1 } output { name: "y" data_type: TYPE_FP32 dims: 1 }`, slowGraph(8))
}

// slowGraph returns x after some products of large matrices, each some milliseconds of a core.
func slowGraph(products int) *onnxmodel.Graph {
	const n, wide = onnxmodel.Symbolic, 512
	g := onnxmodel.NewGraph("slow").Input("x", onnxmodel.Float32, n, 1).
		Initializer("w", make([]float32, wide*wide), wide, wide).
		Node("Add", []string{"w", "x"}, []string{"h0"}) // from x, so that nothing is computed in advance
	for k := range products {
		g.Node("MatMul", []string{fmt.Sprint("h", k), "w"}, []string{fmt.Sprint("h", k+1)})
	}
	return g.Node("ReduceSum", []string{fmt.Sprint("h", products)}, []string{"zero"}).
		Node("Reshape", []string{"zero", "shape"}, []string{"none"}).InitializerInt64("shape", []int64{1, 1}, 2).
		Node("Add", []string{"x", "none"}, []string{"y"}).Output("y", onnxmodel.Float32, n, 1)
}

// Clients that share no code with this project judge a running server: gRPC in C++ under Python, gRPC for Node, and
// three clients of HTTP in Python and one in JavaScript. The programs beside this test say what they ask.
func TestClientsOfOtherMakersAreServed(t *testing.T) {
	needsONNX(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	root := t.TempDir()
	judgedModels(t, root)
	server := serve(t, root, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--admin", "off", "--shared-memory",
		"/sluice-judge", "--clients-control-models")
	http, grpc := server.http, server.grpc
	until(t, func() bool { return get("http://"+http+"/v2/health/ready") == 200 })
	t.Run("Python", func(t *testing.T) {
		program, plugin := python(t)
		messages := t.TempDir()
		judge(t, nil, "protoc", "-I..", "--python_out="+messages, "--grpc_out="+messages,
			"--plugin=protoc-gen-grpc="+plugin, "../internal/api/oip/pb/open_inference.proto",
			"../internal/models/repository/pb/model_config.proto")
		judged(t, judge(t, []string{"PYTHONPATH=" + messages, "PYTHONDONTWRITEBYTECODE=1"}, program,
			"clients/python/judge.py", http, grpc))
	})
	t.Run("Node", func(t *testing.T) {
		needsForJudge(t, "node", "apt-get install nodejs npm", exec.Command("node", "--version"))
		needsForJudge(t, "gRPC for Node", "scripts/client-packages.sh", exec.Command("node", "-e",
			`process.chdir("clients/node"); require(process.cwd() + "/node_modules/@grpc/grpc-js")`))
		judged(t, judge(t, nil, "node", "clients/node/judge.mjs", http, grpc, ".."))
	})
}

// python returns the interpreter that has Debian's packages of the clients, and protoc's plugin for it.
func python(t *testing.T) (program, plugin string) {
	t.Helper()
	program = os.Getenv("SLUICE_PYTHON")
	if program == "" {
		program = "/usr/bin/python3"
	}
	needsForJudge(t, "package of the clients in Python", "scripts/client-packages.sh, or set SLUICE_PYTHON",
		exec.Command(program, "-c", "import grpc, google.protobuf, numpy, gevent, geventhttpclient, aiohttp"))
	needsForJudge(t, "protoc", "scripts/client-packages.sh", exec.Command("protoc", "--version"))
	needsForJudge(t, "plugin of protoc for Python", "scripts/client-packages.sh",
		exec.Command("which", "grpc_python_plugin"))
	plugin, err := exec.LookPath("grpc_python_plugin")
	if err != nil {
		t.Fatal(err)
	}
	return program, plugin
}

// needsForJudge skips a test where a command fails, because something is not installed. In CI the test fails.
func needsForJudge(t *testing.T, what, mend string, probe *exec.Cmd) {
	t.Helper()
	out, err := probe.CombinedOutput()
	switch {
	case err == nil:
	case os.Getenv(mustJudge) != "":
		t.Fatalf("there is no %s, and %s is set: %s (%v: %s)", what, mustJudge, mend, err, out)
	default:
		t.Skipf("there is no %s: %s", what, mend)
	}
}

// judge runs a program and returns what it prints. It fails where the program does.
func judge(t *testing.T, environment []string, program string, args ...string) string {
	t.Helper()
	ctx, done := context.WithTimeout(t.Context(), 5*time.Minute)
	defer done()
	c := exec.CommandContext(ctx, program, args...)
	c.Env = append(os.Environ(), environment...)
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		t.Errorf("%s %s: %v\n%s%s", program, strings.Join(args, " "), err, out, errs.String())
	}
	return string(out)
}

// judged checks that every case of a judge is fulfilled, and that the judge came to its end.
func judged(t *testing.T, said string) {
	t.Helper()
	cases := 0
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, "ok ") {
			cases++
		}
	}
	if cases == 0 || !strings.HasSuffix(said, fmt.Sprintf("judged %d\n", cases)) {
		t.Errorf("%d cases are fulfilled:\n%s", cases, said)
	}
}
