package host

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"time"

	"github.com/sluice-serving/sluice/api/server"
	"github.com/sluice-serving/sluice/host/fault"
	"github.com/sluice-serving/sluice/host/files"
	"github.com/sluice-serving/sluice/host/functions"
)

// listen binds the HTTP, gRPC and admin servers to their addresses.
func (s *Server) listen(o ServerOptions) error {
	c, err := s.frontConfig(o)
	if err != nil {
		return err
	}
	if c.AdminHandlers, err = s.adminHandlers(c.Admin); err != nil {
		return err
	}
	s.front, err = server.New(c, s.service)
	return err
}

// frontConfig returns the configuration of these servers.
func (s *Server) frontConfig(o ServerOptions) (server.Config, error) {
	file := &s.planned.file.Server
	limits := &file.Limits
	or := func(own, configured string) string {
		if own != "" {
			return own
		}
		return configured
	}
	c := server.Config{
		HTTP: or(o.HTTP, file.HTTP), GRPC: or(o.GRPC, file.GRPC), Admin: or(o.Admin, file.Admin),
		MaxRequest: int64(limits.Request), MaxHeader: int(limits.Header), Connections: limits.Connections,
		Streams: limits.Streams, Items: limits.Items, ReadTimeout: time.Duration(limits.ReadTimeout),
		IdleTimeout:  time.Duration(limits.IdleTimeout),
		DrainTimeout: time.Duration(file.DrainTimeout), NotReady: time.Duration(file.NotReady),
		AdminAnywhere: file.AdminAnywhere, ModelControl: file.ModelControl, Version: Version(), Log: s.log,
		SharedMemory: or(o.SharedMemory, file.SharedMemory), Origins: file.Origins, Name: or(o.Name, file.Name),
		LogLevel: o.LogLevel,
	}
	var err error
	c.TLS, err = s.tlsConfig()
	return c, err
}

// largestCertificates bounds a file of PEM certificates, in bytes.
const largestCertificates = 1 << 20

// tlsConfig reads the certificates that the file names. It returns nil if it names none.
func (s *Server) tlsConfig() (*tls.Config, error) {
	f := s.planned.file
	names := &f.Server.TLS
	if names.Cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(f.Path(names.Cert), f.Path(names.Key))
	if err != nil {
		return nil, fault.Errorf(fault.Config, "server.tls: %w", err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	if names.ClientCA == "" {
		return c, nil
	}
	pem, err := files.Read(f.Path(names.ClientCA), largestCertificates)
	if err != nil {
		return nil, err
	}
	c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !c.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fault.Errorf(fault.Config, "server.tls.client_ca: %s holds no certificate", names.ClientCA)
	}
	return c, nil
}

// adminHandlers returns the handlers of the admin address. Requests that change something need the token, if the file
// names one.
func (s *Server) adminHandlers(address string) (map[string]http.Handler, error) {
	f, token := s.planned.file, ""
	if f.Server.AdminToken != "" && address != server.Off {
		var err error
		if token, err = server.Token(f.Path(f.Server.AdminToken)); err != nil {
			return nil, err
		}
	}
	out := map[string]http.Handler{
		"/metrics":         s.telemetry.Metrics(),
		"/debug/decisions": s.telemetry.Decisions(),
		"/debug/explain":   s.telemetry.Explanations(),
		"/prices":          server.Guard(token, true, server.Prices(s.service.prices, s.service.setPrice)),
	}
	if s.functions != nil {
		out["/v1/"] = server.Guard(token, false,
			functions.Handler(s.functions.manager, int64(f.Server.Limits.Model)))
	}
	return out, nil
}
