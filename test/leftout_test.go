package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel/pb"
)

// A model of a repository that is not even an app, because of its file or config.pbtxt, is known to clients with the
// reason. It is served once it is mended.
func TestAModelThatIsLeftOutSaysWhy(t *testing.T) {
	needsONNX(t)
	repository := t.TempDir()
	adding(t, repository, "good", 1, 1)
	file := adding(t, repository, "list", 1, 2)
	m, err := onnxmodel.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	m.Graph.Input[0].Type = &pb.TypeProto{Value: &pb.TypeProto_SequenceType{
		SequenceType: &pb.TypeProto_Sequence{ElemType: m.Graph.Input[0].Type},
	}}
	data, err := proto.Marshal(m)
	if err == nil {
		err = os.WriteFile(file, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	adding(t, repository, "wide", 1, 3)
	if err := os.WriteFile(filepath.Join(repository, "wide", "config.pbtxt"), []byte("max_batch_size: 4\n"+
		"input { name: \"x\" data_type: TYPE_FP32 dims: [ -1, 2 ] }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	base := controlled(t, repository, "--model-control-mode", "poll", "--repository-poll-secs", "1").url()
	if got := added(t, base, "good"); got != "2" {
		t.Errorf("the good one: %s", got)
	}
	for model, want := range map[string]string{
		"list": "is of type sequence of FLOAT tensors", "wide": "dims: [-1,2], but the model file has the shape [2]",
	} {
		if code, got := postTo(t, base+"/v2/models/"+model+"/infer", onesToAdd); code != 503 ||
			!strings.Contains(got, want) {
			t.Errorf("%s is called: %d %s", model, code, got)
		}
		if code, got := postTo(t, base+"/v2/repository/index", ""); code != 200 ||
			!strings.Contains(got, `{"name":"`+model+`","version":"1","state":"UNAVAILABLE","reason":"`) ||
			!strings.Contains(got, want) {
			t.Errorf("%s in the index: %d %s", model, code, got)
		}
	}
	adding(t, repository, "list", 1, 5)
	until(t, func() bool { return get(base+"/v2/models/list/ready") == 200 })
	if got := added(t, base, "list"); got != "6" {
		t.Errorf("the mended one: %s", got)
	}
}
