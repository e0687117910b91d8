package server

import (
	"errors"
	"io"
	"net/http"

	"github.com/sluice-serving/sluice/internal/api/oip"
)

// readOn is how many times the largest request is read of one that is refused before its end, and forgotten, so that a
// client that is still sending comes to read the answer.
const readOn = 4

// limitKey is the setting that bounds requests.
const limitKey = "server.limits.request"

// unreadError is why a body was not read to its end.
type unreadError struct{ error }

func (e *unreadError) Unwrap() error { return e.error }

// tooLarge returns the protocol's error for a body that http.MaxBytesReader has cut off; nil for other errors.
func tooLarge(err error) error {
	var large *http.MaxBytesError
	if !errors.As(err, &large) {
		return nil
	}
	return oip.Errorf(oip.TooLarge, "", "the request has more than %d bytes, the limit of this server (%s)",
		large.Limit,
		limitKey)
}

// failUnread answers a request whose body was not read to its end. A client that sends all of it before it reads would
// find the connection reset; so the rest is read, within a bound, before the connection is closed.
func (s *Server) failUnread(w http.ResponseWriter, r *http.Request, e *oip.Error) {
	w.Header().Set("Connection", "close")
	c := http.NewResponseController(w)
	duplex := c.EnableFullDuplex() // not in HTTP/2, which needs none
	writeError(w, e.Code.HTTP(), e.Error())
	if duplex == nil {
		_ = c.Flush()
	}
	_, _ = io.CopyN(io.Discard, r.Body, readOn*s.config.MaxRequest)
}
