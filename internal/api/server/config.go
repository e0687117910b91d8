package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"google.golang.org/grpc"

	"github.com/sluice-serving/sluice/internal/api/access"
	"github.com/sluice-serving/sluice/internal/api/listen"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/limits"
)

// Off as an address disables a listener.
const Off = "off"

// Unversioned is the version in metadata when the program does not know its own.
const Unversioned = "devel"

// Config says where and how clients are answered. A limit of zero means the one of package internal/limits.
type Config struct {
	HTTP, GRPC, Admin string      // HOST:PORT, or "" or Off for none
	Net               listen.Net  // that these are of
	TLS               *tls.Config // of HTTP and gRPC; nil for none
	// Certificate is set where another server ends TLS for callers over gRPC and hands their calls on: it returns the
	// certificate that was verified there, nil for none. Nil takes that of the connection.
	Certificate func(context.Context) *x509.Certificate

	MaxRequest  int64 // bytes of a request after decompression
	Output      int64 // bytes of the outputs of one request
	Memory      int64 // for all that requests hold at once, in bytes; 0 for no bound
	MaxHeader   int   // bytes
	Connections int   // open at once, for each protocol
	// ConnectionsEach is how many of them one address may have.
	ConnectionsEach int
	Streams         int           // calls at once on one gRPC connection
	Items           int           // of one request
	Message         oip.Bounds    // of what one request holds
	UnpackRatio     int           // of the size of a compressed request, once it unpacks to more than a MiB
	ReadTimeout     time.Duration // for a request to arrive
	IdleTimeout     time.Duration // of a silent connection
	WriteTimeout    time.Duration // for a client to read 64 KiB of an answer
	StreamIdle      time.Duration // of a gRPC stream without a message
	// ConnectionAge is how long a gRPC connection may live. Calls on it have DrainTimeout to end then.
	ConnectionAge time.Duration
	DrainTimeout  time.Duration // for accepted requests to finish
	// NotReady is how long the server reports that it is not ready before it stops accepting, so that load balancers
	// notice; 0 for none.
	NotReady time.Duration
	// Hurry ends NotReady early, once it is closed; nil never does.
	Hurry <-chan struct{}

	AdminTLS *tls.Config // of the admin address; nil for none
	// AdminHandlers are served on the admin address by pattern. PublicMetrics has that of MetricsPath on the HTTP
	// address as well.
	AdminHandlers map[string]http.Handler
	// AdminPage reports whether a path of AdminHandlers holds no data, such as the parts of a page: everybody may read
	// it. Nil is none.
	AdminPage     func(path string) bool
	PublicMetrics bool
	// Reflection has gRPC describe its services to whoever asks.
	Reflection bool
	// Gate says who may do what. Nil stands for one that lets everybody read and infer, and whoever shows Token do all.
	Gate *access.Gate
	// Audit is given every call that changes something; nil for none. AccessLog gets one of AccessEvery calls; nil for
	// none.
	Audit       func(*access.Entry)
	AccessLog   *access.Lines
	AccessEvery int
	// AdminAnywhere allows an admin address that other machines can reach.
	AdminAnywhere bool
	// Token is what callers must show to load and unload models where there is no Gate; "" lets nobody. ModelControl
	// lets any client.
	Token        string
	ModelControl bool
	// Hosts are names of this server that callers may use for requests that change something, beside its addresses,
	// localhost and the machine's own name.
	Hosts []string

	// WrapHTTP, if not nil, is put around the handler of the HTTP address, and Intercept around unary gRPC calls.
	WrapHTTP  func(http.Handler) http.Handler
	Intercept []grpc.UnaryServerInterceptor

	// SharedMemory is the prefix of the names of shared memory objects that clients on this machine may have read and
	// written, such as "/" for all; "" for none.
	SharedMemory string

	// Traces is the folder for files of traced requests; "" for none.
	Traces string

	// Origins are the origins whose pages may call over HTTP, such as https://example.org, or "*" for all; none for no
	// page of another origin.
	Origins []string

	// Connected is called with the client's address when a gRPC connection begins, and when it has ended; nil for none.
	// It returns soon.
	Connected func(remote string, begins bool)

	Name string // in metadata; "" means sluice
	// Extensions are listed in metadata beside those that every server has.
	Extensions []string
	Version    string // in metadata; "" means Unversioned
	Log        *slog.Logger
	// Trouble is told of requests that have panicked; nil logs them.
	Trouble func(error)
	// LogLevel is the level of Log, which clients that may load models may change; nil for one that is fixed.
	LogLevel *slog.LevelVar
}

func (c Config) withDefaults() (Config, error) {
	def := func(p *int, v int) {
		if *p <= 0 {
			*p = v
		}
	}
	wait := func(p *time.Duration, v time.Duration) {
		if *p <= 0 {
			*p = v
		}
	}
	if c.MaxRequest <= 0 {
		c.MaxRequest = limits.RequestBytes
	}
	if c.Output <= 0 {
		c.Output = limits.OutputBytes
	}
	def(&c.MaxHeader, limits.HeaderBytes)
	def(&c.Connections, limits.Connections)
	def(&c.ConnectionsEach, (c.Connections+1)/2)
	def(&c.Streams, limits.Streams)
	def(&c.Items, limits.Items)
	def(&c.UnpackRatio, limits.UnpackRatio)
	wait(&c.ReadTimeout, limits.ReadTimeout)
	wait(&c.IdleTimeout, limits.IdleTimeout)
	wait(&c.WriteTimeout, limits.WriteTimeout)
	wait(&c.StreamIdle, limits.StreamIdle)
	wait(&c.ConnectionAge, limits.ConnectionAge)
	wait(&c.DrainTimeout, limits.DrainTimeout)
	c.Message = c.Message.WithDefaults()
	if c.Name == "" {
		c.Name = serverName
	}
	if c.Version == "" {
		c.Version = Unversioned
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if log := c.Log; c.Trouble == nil {
		c.Trouble = func(err error) { log.Error("a request panicked", "error", err) }
	}
	if c.Gate == nil {
		open, token := access.Look|access.Infer, c.Token
		if c.ModelControl {
			open = access.All
		}
		c.Gate = access.New(access.Config{
			Open: open, Identifiers: []access.Identifier{access.Token(func(time.Time) string { return token })},
		})
	}
	if c.MaxRequest > 1<<31-1 {
		return c, fmt.Errorf("server.limits.request: is %d bytes, gRPC takes at most 2 GiB", c.MaxRequest)
	}
	if listens(c.Admin) && !c.AdminAnywhere {
		host, _, err := net.SplitHostPort(c.Admin)
		if err != nil {
			return c, fmt.Errorf("server.admin: %w", err)
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return c, fmt.Errorf("server.admin: %q can be reached from other machines, which read there without "+
				"authentication: use 127.0.0.1:PORT, or allow it by server.admin_anywhere", c.Admin)
		}
	}
	return c, nil
}

func listens(address string) bool { return address != "" && address != Off }
