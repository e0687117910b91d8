package server_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/tensor"
)

// object makes a shared memory object of a test and returns its name and its file.
func object(t *testing.T, content []byte) (key, path string) {
	t.Helper()
	if _, err := os.Stat("/dev/shm"); err != nil {
		t.Skip("this machine has no /dev/shm")
	}
	f, err := os.CreateTemp("/dev/shm", "sluice-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(f.Name()) })
	if _, err := f.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return "/" + filepath.Base(f.Name()), f.Name()
}

var row = []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40} // 1, 2

const (
	sharedIn = `{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"parameters":` +
		`{"shared_memory_region":"in","shared_memory_byte_size":8,"shared_memory_offset":8}}]`
	sharedOut = `,"outputs":[{"name":"y","parameters":{"shared_memory_region":"out","shared_memory_byte_size":%d,` +
		`"shared_memory_offset":4}},{"name":"s"}]}`
)

// Inputs and outputs pass through regions of shared memory, over both protocols, within the bounds of the regions.
func TestSharedMemory(t *testing.T) {
	s := start(t, server.Config{SharedMemory: "/sluice-test-"})
	in, _ := object(t, append(make([]byte, 12), row...))
	out, outFile := object(t, make([]byte, 16))
	register := func(name, key string, offset, size int) (int, string) {
		code, _, body := s.do(t, "POST", "/v2/systemsharedmemory/region/"+name+"/register",
			fmt.Sprintf(`{"key":%q,"offset":%d,"byte_size":%d}`, key, offset, size))
		return code, body
	}
	for _, bad := range []struct {
		name, key    string
		offset, size int
		want         string
	}{
		{"a", "/other", 0, 8, "server.shared_memory"},
		{"a", "/sluice-test-/../../etc/passwd", 0, 8, "name of a shared memory object"},
		{"a", "/sluice-test-none", 0, 8, "Unable to open"},
		{"a", in, 0, 21, "the object"},
		{"a", in, 20, 1, "the object"},
		{"a", in, 0, 0, "at least 1 byte"},
	} {
		if code, body := register(bad.name, bad.key, bad.offset, bad.size); code != 400 ||
			!strings.Contains(body, bad.want) {
			t.Errorf("%+v: %d %s", bad, code, body)
		}
	}
	if code, body := register("in", in, 4, 16); code != 200 {
		t.Fatal(code, body)
	}
	if code, body := register("in", in, 4, 16); code != 400 || !strings.Contains(body, "already in manager") {
		t.Error(code, body)
	}
	if code, body := register("out", out, 0, 16); code != 200 {
		t.Fatal(code, body)
	}
	if code, _, body := s.do(t, "GET", "/v2/systemsharedmemory/status", ""); code != 200 ||
		body != fmt.Sprintf(`[{"name":"in","key":%q,"offset":4,"byte_size":16},`+
			`{"name":"out","key":%q,"offset":0,"byte_size":16}]`, in, out) {
		t.Error(code, body)
	}
	code, _, body := s.do(t, "POST", model+"/infer", sharedIn+fmt.Sprintf(sharedOut, 12))
	if code != 200 || !strings.Contains(body, `{"name":"y","datatype":"FP32","shape":[1,2],"parameters":`+
		`{"shared_memory_region":"out","shared_memory_offset":4,"shared_memory_byte_size":8}}`) {
		t.Fatal(code, body)
	}
	if got, _ := os.ReadFile(outFile); !bytes.Equal(got, append(append(make([]byte, 4), row...), make([]byte, 4)...)) {
		t.Errorf("written: %v", got)
	}
	for _, bad := range []struct{ body, want string }{
		{strings.Replace(sharedIn, `"in"`, `"none"`, 1) + "}", "Unable to find shared memory region"},
		{strings.Replace(sharedIn, `offset":8`, `offset":9`, 1) + "}", "Invalid offset + byte size"},
		{strings.Replace(sharedIn, `offset":8`, `offset":-1`, 1) + "}", "number of bytes"},
		{strings.Replace(sharedIn, `size":8`, `size":4`, 1) + "}", "needs 2 elements"},
		{sharedIn + fmt.Sprintf(sharedOut, 7), "should be at least 8 bytes"},
		{sharedIn + fmt.Sprintf(sharedOut, 13), "Invalid offset + byte size"},
	} {
		if code, _, body := s.do(t, "POST", model+"/infer", bad.body); code != 400 || !strings.Contains(body,
			bad.want) {
			t.Errorf("%s: %d %s", bad.body, code, body)
		}
	}
	overGRPC(t, s, out, outFile)
	if code, _, _ := s.do(t, "POST", "/v2/systemsharedmemory/unregister", ""); code != 200 {
		t.Error(code)
	}
	if code, _, body := s.do(t, "GET", "/v2/systemsharedmemory/status", ""); body != "[]" {
		t.Error(code, body)
	}
}

// overGRPC sends one input in the message and has one output written to the region "out", which ends before the object
// does and then is cut off.
func overGRPC(t *testing.T, s *running, out, outFile string) {
	t.Helper()
	c, ctx := s.client(t), t.Context()
	r := oip.EncodeRequest("digits/v1", "", "", []tensor.Tensor{
		{Name: "x", DType: tensor.FP32, Shape: []int64{1, 2}},
	}, nil)
	r.RawInputContents = nil
	r.Inputs[0].Parameters = map[string]*pb.InferParameter{
		"shared_memory_region": oip.String("in"), "shared_memory_byte_size": oip.Int(8),
		"shared_memory_offset": oip.Int(8),
	}
	r.Outputs = []*pb.ModelInferRequest_InferRequestedOutputTensor{
		{Name: "s"},
		{Name: "y", Parameters: map[string]*pb.InferParameter{
			"shared_memory_region": oip.String("out"), "shared_memory_byte_size": oip.Int(8),
		}},
	}
	got, err := c.ModelInfer(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.RawOutputContents) != 2 || len(got.RawOutputContents[1]) != 0 ||
		got.Outputs[1].Parameters["shared_memory_byte_size"].GetInt64Param() != 8 {
		t.Errorf("%v", got)
	}
	if written, _ := os.ReadFile(outFile); !bytes.Equal(written[:8], row) {
		t.Errorf("written: %v", written)
	}
	list, err := c.SystemSharedMemoryStatus(ctx, &pb.SystemSharedMemoryStatusRequest{Name: "out"})
	if err != nil || list.Regions["out"].GetKey() != out || list.Regions["out"].GetByteSize() != 16 {
		t.Error(list, err)
	}
	if _, err := c.SystemSharedMemoryStatus(ctx, &pb.SystemSharedMemoryStatusRequest{Name: "none"}); status.Code(err) !=
		codes.NotFound {
		t.Error(err)
	}
	if _, err := c.CudaSharedMemoryRegister(ctx, &pb.CudaSharedMemoryRegisterRequest{Name: "g"}); status.Code(err) !=
		codes.Unimplemented || !strings.Contains(err.Error(), "CUDA shared memory is not supported") {
		t.Error(err)
	}
	// A client that shrinks its object gets an error; the server goes on.
	if err := os.Truncate(outFile, 2); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ModelInfer(ctx, r); status.Code(err) != codes.InvalidArgument ||
		!strings.Contains(err.Error(), "not there any more") {
		t.Errorf("output to a shrunk object: %v", err)
	}
	if st, _ := os.Stat(outFile); st.Size() != 2 {
		t.Errorf("the object has %d bytes", st.Size())
	}
	r.Inputs[0].Parameters["shared_memory_region"] = oip.String("out")
	if _, err := c.ModelInfer(ctx, r); status.Code(err) != codes.InvalidArgument {
		t.Errorf("input from a shrunk object: %v", err)
	}
}

// An object that is a link, a pipe or a folder is not registered, and one whose name another object has taken since is
// the one that was registered.
func TestSharedMemoryThatChanges(t *testing.T) {
	s := start(t, server.Config{SharedMemory: "/sluice-test-"})
	register := func(name, key string) (int, string) {
		code, _, body := s.do(t, "POST", "/v2/systemsharedmemory/region/"+name+"/register",
			fmt.Sprintf(`{"key":%q,"byte_size":8}`, key))
		return code, body
	}
	key, path := object(t, append(make([]byte, 8), row...))
	for what, make := range map[string]func(at string) error{
		"link":      func(at string) error { return os.Symlink(path, at) },
		"link away": func(at string) error { return os.Symlink("/etc/passwd", at) },
		"pipe":      func(at string) error { return syscall.Mkfifo(at, 0o600) },
		"folder":    func(at string) error { return os.Mkdir(at, 0o700) },
	} {
		at := path + "-other"
		if err := make(at); err != nil {
			t.Fatal(err)
		}
		if code, body := register(what, key+"-other"); code != 400 || !strings.Contains(body, "Unable to open") {
			t.Errorf("%s: %d %s", what, code, body)
		}
		if err := os.Remove(at); err != nil {
			t.Fatal(err)
		}
	}
	code, _, body := s.do(t, "POST", "/v2/systemsharedmemory/region/in/register",
		fmt.Sprintf(`{"key":%q,"byte_size":16}`, key))
	if code != 200 {
		t.Fatal(code, body)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", path); err != nil {
		t.Fatal(err)
	}
	if code, _, body := s.do(t, "POST", model+"/infer", sharedIn+"}"); code != 200 || !strings.Contains(body, "[1,2]") {
		t.Errorf("after it was replaced: %d %s", code, body)
	}
}

// Without a prefix in the configuration nothing is registered, and requests that name a region are refused.
func TestSharedMemoryIsOffByDefault(t *testing.T) {
	s := start(t, server.Config{})
	for path, body := range map[string]string{
		"/v2/systemsharedmemory/region/a/register": `{"key":"/a","byte_size":1}`, model + "/infer": sharedIn + "}",
	} {
		if code, _, got := s.do(t, "POST", path, body); code != 501 || !strings.Contains(got, "server.shared_memory") {
			t.Errorf("%s: %d %s", path, code, got)
		}
	}
}

// Inputs in shared memory count towards the memory of all requests, over both protocols.
func TestSharedMemoryIsPartOfTheBudget(t *testing.T) {
	s := start(t, server.Config{SharedMemory: "/sluice-test-", Memory: 1 << 20})
	key, _ := object(t, make([]byte, 2<<20))
	if code, _, body := s.do(t, "POST", "/v2/systemsharedmemory/region/in/register",
		fmt.Sprintf(`{"key":%q,"byte_size":%d}`, key, 2<<20)); code != 200 {
		t.Fatal(code, body)
	}
	for size, want := range map[int]int{8: 200, 2 << 20: 503} {
		body := fmt.Sprintf(`{"inputs":[{"name":"x","datatype":"FP32","shape":[1,%d],"parameters":`+
			`{"shared_memory_region":"in","shared_memory_byte_size":%d}}]}`, size/4, size)
		code, _, got := s.do(t, "POST", model+"/infer", body)
		if code != want || code == 503 && !strings.Contains(got, "server.limits.memory") {
			t.Errorf("%d bytes: %d %s, want %d", size, code, got, want)
		}
	}
	r := rowOf(1)
	r.RawInputContents, r.Inputs[0].Shape = nil, []int64{1, 1 << 19}
	r.Inputs[0].Parameters = map[string]*pb.InferParameter{
		"shared_memory_region": oip.String("in"), "shared_memory_byte_size": oip.Int(2 << 20),
	}
	if _, err := s.client(t).ModelInfer(t.Context(), r); status.Code(err) != codes.Unavailable {
		t.Errorf("over gRPC: %v", err)
	}
}

// The classes with the highest values are named by value, number and label.
func TestClassification(t *testing.T) {
	s := start(t, server.Config{})
	s.p.model.Labels = map[string][]string{"y": {"cat", "dog"}}
	body := `{"inputs":[{"name":"x","datatype":"FP32","shape":[2,2],"data":[1,2.5,-1,-3]}],` +
		`"outputs":[{"name":"y","parameters":{"classification":%d}}]}`
	for n, want := range map[int]string{
		1: `"datatype":"BYTES","shape":[2,1],"data":["2.500000:1:dog","-1.000000:0:cat"]`,
		5: `"shape":[2,2],"data":["2.500000:1:dog","1.000000:0:cat","-1.000000:0:cat","-3.000000:1:dog"]`,
		0: `"datatype":"FP32"`,
	} {
		if code, _, got := s.do(t, "POST", model+"/infer", fmt.Sprintf(body, n)); code != 200 ||
			!strings.Contains(got, want) {
			t.Errorf("%d classes: %d %s", n, code, got)
		}
	}
	r := rowOf(1)
	r.Outputs = []*pb.ModelInferRequest_InferRequestedOutputTensor{
		{Name: "y", Parameters: map[string]*pb.InferParameter{"classification": oip.Int(1)}},
	}
	got, err := s.client(t).ModelInfer(t.Context(), r)
	if err != nil {
		t.Fatal(got, err)
	}
	if text := string(got.RawOutputContents[0]); !strings.HasSuffix(text, ":0:cat") {
		t.Errorf("%q", text)
	}
	r.Outputs[0].Name = "s"
	if _, err := s.client(t).ModelInfer(t.Context(), r); status.Code(err) != codes.InvalidArgument {
		t.Errorf("classes of strings: %v", err)
	}
}
