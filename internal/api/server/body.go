package server

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/sluice-serving/sluice/internal/api/memory"
	"github.com/sluice-serving/sluice/internal/api/oip"
)

// withBody reads a request and calls do with its body, which is JSON, without a byte order mark. The body's memory is
// claimed until do returns.
func (s *Server) withBody(w http.ResponseWriter, r *http.Request, do func(body []byte) error) error {
	holds := s.memory.Begin(tenantOf(r.Context()))
	defer holds.Release()
	body, err := s.body(w, r, holds)
	if err != nil {
		return err
	}
	return do(bytes.TrimPrefix(body, []byte("\ufeff")))
}

// body reads a request, decompressed and bounded: neither the received nor the decompressed size may exceed the limit.
// holds claims its memory. Where it fails, the client may still be sending.
func (s *Server) body(w http.ResponseWriter, r *http.Request, holds *memory.Claim) ([]byte, error) {
	b, err := s.unpacked(w, r, holds)
	if err == nil {
		return b, nil
	}
	known := (*oip.Error)(nil)
	if large := tooLarge(err); large != nil {
		err = large
	} else if !errors.As(err, &known) && r.Context().Err() == nil {
		err = oip.Errorf(oip.Invalid, "", "the body cannot be read: %v", err) // such as wrong chunks
	}
	return nil, &unreadError{err}
}

func (s *Server) unpacked(w http.ResponseWriter, r *http.Request, holds *memory.Claim) ([]byte, error) {
	if r.ContentLength > s.config.MaxRequest {
		return nil, &http.MaxBytesError{Limit: s.config.MaxRequest}
	}
	encoding := strings.ToLower(r.Header.Get("Content-Encoding"))
	if plain := encoding == "" || encoding == "identity"; plain && r.ContentLength >= 0 {
		return holds.ReadAll(r.Body, r.ContentLength, tensorsAt(r)) // net/http reads no more than the length
	}
	packed := &countingReader{Reader: http.MaxBytesReader(w, r.Body, s.config.MaxRequest)}
	var in io.Reader = packed
	switch encoding {
	case "", "identity":
		return holds.ReadAll(in, r.ContentLength, tensorsAt(r))
	case "gzip":
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, oip.Errorf(oip.Invalid, "Content-Encoding", "gzip: %v", err)
		}
		in = z
	case "deflate":
		z, err := zlib.NewReader(in)
		if err != nil {
			return nil, oip.Errorf(oip.Invalid, "Content-Encoding", "deflate (zlib format): %v", err)
		}
		in = z
	default:
		return nil, oip.Errorf(oip.Unsupported, "Content-Encoding", "%.40q is not supported: use gzip, deflate or none",
			r.Header.Get("Content-Encoding"))
	}
	in = &unpackReader{Reader: in, packed: packed, ratio: s.config.UnpackRatio}
	b, err := holds.ReadAll(io.LimitReader(in, s.config.MaxRequest+1), 0, tensorsAt(r))
	if known := (*oip.Error)(nil); errors.As(err, &known) || tooLarge(err) != nil {
		return nil, err
	}
	if err != nil {
		return nil, oip.Errorf(oip.Invalid, "Content-Encoding", "%v", err)
	}
	if int64(len(b)) > s.config.MaxRequest {
		return nil, oip.Errorf(oip.TooLarge, "", "the request unpacks to more than %d bytes, the limit of this server "+
			"(%s)", s.config.MaxRequest, limitKey)
	}
	return b, nil
}

// tensorsAt is where the binary tensors of a request begin; 0 where it has none.
func tensorsAt(r *http.Request) int {
	n, err := headerLength(r)
	if err != nil {
		return 0
	}
	return max(n, 0)
}
