package dispatcher_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/internal/api/access"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
)

// TestFleetWithKeys has two replicas serve two cells whose callers show keys. Each replica refuses who shows none, or
// one without the role, also for the cell that the other one serves, over both protocols and on the admin address.
func TestFleetWithKeys(t *testing.T) {
	f := newFleet(t, cluster.Start(t, cluster.Options{}))
	key, line, err := access.NewKey("till", "shop", access.Look|access.Infer, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	looks, looker, err := access.NewKey("viewer", "", access.Look, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte(line+"\n"+looker+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	guarded := fmt.Sprintf("access: {keys: %q}\ntenants: [{name: shop, weight: 2}]\n", file)
	f.setCell(0, guarded+fakeCell(1, "a0"))
	f.setCell(1, guarded+fakeCell(1, "a1"))
	f.start("d0", nil)
	f.start("d1", nil)
	f.served(2, 1)
	ask := func(method, url, key string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(question))
		if err != nil {
			t.Fatal(err)
		}
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		a, err := quick.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer a.Body.Close()
		b, _ := io.ReadAll(a.Body)
		return a.StatusCode, string(b)
	}
	for _, r := range f.live() {
		conn, err := grpc.NewClient("passthrough:///"+r.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		c := pb.NewGRPCInferenceServiceClient(conn)
		for _, app := range []string{"a0", "a1"} {
			infer := "http://" + r.http + "/v2/models/" + app + "/infer"
			cluster.Eventually(t, "the app is answered", func() error {
				if code, body := ask(http.MethodPost, infer, key); code != http.StatusOK {
					return fmt.Errorf("%s answers for %s: %d %s", r.name, app, code, body)
				}
				return nil
			})
			for shown, want := range map[string]int{"": 401, "sluice_" + strings.Repeat("A", 26): 401, looks: 403} {
				if code, body := ask(http.MethodPost, infer, shown); code != want {
					t.Errorf("%s answers for %s with key %.10q: %d %s, want %d", r.name, app, shown, code, body, want)
				}
			}
			if _, err := c.ModelInfer(t.Context(), grpcQuestion(app)); status.Code(err) != codes.Unauthenticated {
				t.Errorf("%s answers for %s without a key over gRPC: %v", r.name, app, err)
			}
			ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+key)
			if _, err := c.ModelInfer(ctx, grpcQuestion(app)); err != nil {
				t.Errorf("%s answers for %s over gRPC: %v", r.name, app, err)
			}
		}
		for path, want := range map[string]string{"/v2/models/stats": `"a1"`, "/v2/repository/index": `"a1"`} {
			method := http.MethodGet
			if strings.HasSuffix(path, "index") {
				method = http.MethodPost
			}
			if _, body := ask(method, "http://"+r.http+path, ""); strings.Contains(body, want) {
				t.Errorf("%s tells of apps at %s without a key: %s", r.name, path, body)
			}
			if code, body := ask(method, "http://"+r.http+path, looks); code != 200 || !strings.Contains(body, want) {
				t.Errorf("%s at %s: %d %s", r.name, path, code, body)
			}
		}
		if code, _ := ask(http.MethodGet, "http://"+r.http+"/v2/health/ready", ""); code != 200 {
			t.Errorf("%s: health needs a key: %d", r.name, code)
		}
	}
	holders, err := f.holders()
	if err != nil {
		t.Fatal(err)
	}
	page := "http://" + f.named(holders[0]).admin + "/cells/0/api/v1/overview"
	if code, _ := ask(http.MethodGet, page, ""); code != 401 {
		t.Errorf("a cell's dashboard without a key: %d", code)
	}
	if code, body := ask(http.MethodGet, page, looks); code != 200 {
		t.Errorf("a cell's dashboard: %d %s", code, body)
	}
}
