package python

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// variant is the one of backendOf.
var variant = []serving.VariantID{0}

// short ends in two seconds.
func short(t testing.TB) context.Context {
	t.Helper()
	ctx, done := context.WithTimeout(context.Background(), 2*time.Second)
	t.Cleanup(done)
	return ctx
}

// command runs the interpreter with the package on its path.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	folder, err := workerFolder("")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(needsPython(t), args...)
	c.Env = environ(map[string]string{"PYTHONPATH": folder, "PYTHONUNBUFFERED": "1"})
	c.Stderr = os.Stderr
	return c
}

// needsGRPC skips a test where the interpreter has no grpcio.
func needsGRPC(t *testing.T) {
	t.Helper()
	if err := command(t, "-c", "import grpc").Run(); err != nil {
		if os.Getenv("SLUICE_PYTHON_TESTS") == "must" {
			t.Fatal(err)
		}
		t.Skip("the interpreter has no grpcio")
	}
}

// The package's own tests pass.
func TestPackage(t *testing.T) {
	c := exec.Command(needsPython(t), "-m", "unittest", "discover", "-s", "tests")
	c.Dir = "../../../python"
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// A worker runs alone, too, and clients of the protocol call it.
func TestAlone(t *testing.T) {
	needsGRPC(t)
	c := command(t, "-m", "sluice_worker", source(t, scale), "--port", "0", "--option", "by=3")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	at := strings.LastIndex(line, " ")
	if err != nil || at < 0 {
		t.Fatal(line, err)
	}
	conn, err := grpc.NewClient(strings.TrimSpace(line[at:]), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := pb.NewGRPCInferenceServiceClient(conn)
	meta, err := client.ModelMetadata(t.Context(), &pb.ModelMetadataRequest{Name: "app"})
	if err != nil || len(meta.GetInputs()) != 1 || meta.GetInputs()[0].GetDatatype() != "FP32" {
		t.Fatal(meta, err)
	}
	config, err := client.ModelConfig(t.Context(), &pb.ModelConfigRequest{Name: "app"})
	if err != nil || config.GetConfig().GetMaxBatchSize() != 64 {
		t.Error(config, err)
	}
	answer, err := client.ModelInfer(t.Context(), oip.EncodeRequest("app", "", "7",
		[]tensor.Tensor{floats("x", 1, 2)}, nil))
	if err != nil {
		t.Fatal(err)
	}
	outputs, err := oip.DecodeOutputs(answer)
	if err != nil || answer.GetId() != "7" || fmt.Sprint(values(outputs[0])) != "[3 6]" {
		t.Error(answer, err)
	}
}

// field is one of sluice_worker/messages.py.
type field struct {
	Name     string           `json:"name"`
	Kind     string           `json:"kind"`
	Repeated bool             `json:"repeated"`
	Message  map[string]field `json:"message"`
}

const dumpMessages = `
import json
from sluice_worker import messages
def dump(table):
    return {str(n): {"name": f.name, "kind": f.kind, "repeated": f.repeated,
                     "message": None if f.message is None else dump(f.message)} for n, f in table.items()}
print(json.dumps({m: [dump(a), dump(b)] for m, (a, b) in messages.METHODS.items()}))
`

// The messages of the package are those of the protocol: names, numbers and kinds of fields.
func TestMessagesAgree(t *testing.T) {
	out, err := command(t, "-c", dumpMessages).Output()
	if err != nil {
		t.Fatal(err)
	}
	var methods map[string][2]map[string]field
	if err := json.Unmarshal(out, &methods); err != nil {
		t.Fatal(err)
	}
	known := pb.File_internal_api_oip_pb_open_inference_proto.Services().Get(0).Methods()
	for name, m := range methods {
		d := known.ByName(protoreflect.Name(name))
		if d == nil {
			t.Errorf("there is no method %s", name)
			continue
		}
		agree(t, name, m[0], d.Input())
		agree(t, name, m[1], d.Output())
	}
}

func agree(t *testing.T, path string, fields map[string]field, d protoreflect.MessageDescriptor) {
	t.Helper()
	kinds := map[protoreflect.Kind]string{
		protoreflect.BoolKind: "bool", protoreflect.Int32Kind: "int", protoreflect.Int64Kind: "int",
		protoreflect.Uint32Kind: "uint", protoreflect.Uint64Kind: "uint", protoreflect.FloatKind: "float",
		protoreflect.DoubleKind: "double", protoreflect.StringKind: "text", protoreflect.BytesKind: "bytes",
		protoreflect.MessageKind: "message",
	}
	for number, f := range fields {
		at := path + "." + f.Name
		var n int32
		_, _ = fmt.Sscan(number, &n)
		x := d.Fields().ByNumber(protoreflect.FieldNumber(n))
		switch {
		case x == nil || string(x.Name()) != f.Name:
			t.Errorf("%s: field %s is not the protocol's", at, number)
		case x.IsMap() != (f.Kind == "map") || !x.IsMap() && (kinds[x.Kind()] != f.Kind || x.IsList() != f.Repeated):
			t.Errorf("%s: is %s, want %v", at, f.Kind, x.Kind())
		case x.IsMap():
			agree(t, at, f.Message, x.MapValue().Message())
		case f.Message != nil:
			agree(t, at, f.Message, x.Message())
		}
	}
}
