package server_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/sluice-serving/sluice/internal/api/access"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/api/server"
)

// bearer sends a key with every call.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}
func (bearer) RequireTransportSecurity() bool { return false }

// BenchmarkAccess compares the whole path with and without what production needs: API keys, tenants with a rate and a
// concurrency, the memory budget, an audit log and an access log of one in a hundred. Both in one run, in turns, so
// that a drifting machine drifts under both. overhead is the median over the turns, in per cent, of the time of the
// cores, client and server, that the second takes more.
func BenchmarkAccess(b *testing.B) {
	tenants := []access.Tenant{{Name: "shop", Rate: 1e6, Concurrency: 1e6, MaxTimeout: time.Minute}}
	key, line, err := access.NewKey("till", "shop", access.Infer, time.Time{})
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "keys"), []byte(line), 0o600); err != nil {
		b.Fatal(err)
	}
	keys, err := access.Keys(filepath.Join(dir, "keys"), access.TenantNumber(tenants), nil)
	if err != nil {
		b.Fatal(err)
	}
	lines, err := access.OpenLines(filepath.Join(dir, "access"), func(err error) { b.Error(err) })
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = lines.Close() })
	secured := func(c *server.Config) {
		c.Gate = access.New(access.Config{Identifiers: []access.Identifier{keys}, Strict: true, Tenants: tenants})
		c.Memory, c.AccessLog, c.AccessEvery, c.Audit = 4<<30, lines, 100, func(*access.Entry) {}
	}
	connect := func(address string, more ...grpc.DialOption) (out []pb.GRPCInferenceServiceClient) {
		for range 4 {
			c, err := grpc.NewClient(address, append(more, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = c.Close() })
			out = append(out, pb.NewGRPCInferenceServiceClient(c))
		}
		return out
	}
	// Both clients send the key: what the header costs on the wire is the client's choice.
	open := connect(startSluice(b, "sluice"), grpc.WithPerRPCCredentials(bearer(key)))
	guarded := connect(startSluice(b, "sluice", secured), grpc.WithPerRPCCredentials(bearer(key)))
	fire(b, open, 64, 2000)
	fire(b, guarded, 64, 2000)
	const turns = 40
	turn := max(b.N/turns, 64)
	var more []float64
	var bare, whole time.Duration
	spent := func(to []pb.GRPCInferenceServiceClient) time.Duration {
		before := processTime(b)
		fire(b, to, 64, turn)
		return processTime(b) - before
	}
	b.ResetTimer()
	for k := range turns {
		var x, y time.Duration
		if k%2 == 0 {
			x, y = spent(open), spent(guarded)
		} else {
			y, x = spent(guarded), spent(open)
		}
		bare, whole = bare+x, whole+y
		more = append(more, 100*(y.Seconds()/x.Seconds()-1))
	}
	slices.Sort(more)
	b.ReportMetric(more[turns/2], "overhead-%")
	b.ReportMetric(100*(whole.Seconds()/bare.Seconds()-1), "mean-overhead-%")
	b.ReportMetric(bare.Seconds()/float64(turns*turn)*1e6, "open-cpu-us")
}

// processTime is the time that this process has had of all cores: other programs on the machine do not count.
func processTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
