package server

import (
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// smallAnswer is the size up to which the blocks of an answer are copied behind its JSON, in bytes: one write of a few
// KiB costs less than several.
const smallAnswer = 4 << 10

// uncounted is the size, in bytes, up to which net/http counts an answer itself, without an allocation: it holds 2 KiB
// back until the handler returns.
const uncounted = 1 << 10

// varyEncoding is the value of Vary of every inference answer.
var varyEncoding = []string{"Accept-Encoding"}

// writeAnswer writes an inference answer, its JSON and the binary tensors behind it, in gzip or deflate where the
// client accepts it. Nothing else is compressed: existing clients send Accept-Encoding with every call but decode the
// answers of inference alone.
func writeAnswer(w http.ResponseWriter, r *http.Request, head []byte, blocks [][]byte) {
	h := w.Header()
	if _, there := h["Vary"]; there {
		h.Add("Vary", varyEncoding[0])
	} else {
		h["Vary"] = varyEncoding
	}
	var to io.Writer = w
	switch encoding := acceptedEncoding(r.Header.Get("Accept-Encoding")); encoding {
	case "":
		size := len(head)
		for _, b := range blocks {
			size += len(b)
		}
		if size > uncounted {
			h["Content-Length"] = []string{strconv.Itoa(size)}
		}
		if size <= smallAnswer {
			for _, b := range blocks {
				head = append(head, b...)
			}
			blocks = nil
		}
	case "gzip":
		h.Set("Content-Encoding", encoding)
		z := packers.Get().(*gzip.Writer)
		z.Reset(w)
		defer packers.Put(z)
		defer z.Close()
		to = z
	default:
		h.Set("Content-Encoding", encoding)
		z, _ := zlib.NewWriterLevel(w, flate.BestSpeed)
		defer z.Close()
		to = z
	}
	_, _ = to.Write(head)
	for _, b := range blocks {
		_, _ = to.Write(b)
	}
}

// packers are reused: a new one takes more than a megabyte, and some clients ask for gzip by default.
var packers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(io.Discard, flate.BestSpeed) // the level is one
	return z
}}

// acceptedEncoding picks gzip or deflate from Accept-Encoding (RFC 9110, section 12.5.3), the one with the higher
// weight, or the first of equal ones; "" when neither is listed with a weight above 0. "*" asks for nothing that the
// client could not do without.
func acceptedEncoding(header string) (best string) {
	weight := 0.0
	for part := range strings.SplitSeq(header, ",") {
		name, parameters, _ := strings.Cut(part, ";")
		name = strings.ToLower(strings.TrimSpace(name))
		if name != "gzip" && name != "deflate" {
			continue
		}
		if q := qualityOf(parameters); q > weight {
			best, weight = name, q
		}
	}
	return best
}

// qualityOf reads the weight of an entry, such as "q=0.5"; 1 when there is none, 0 when it cannot be read.
func qualityOf(parameters string) float64 {
	for p := range strings.SplitSeq(parameters, ";") {
		key, value, ok := strings.Cut(p, "=")
		if !ok || !strings.EqualFold(strings.TrimSpace(key), "q") {
			continue
		}
		q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || !(q >= 0 && q <= 1) {
			return 0
		}
		return q
	}
	return 1
}
