package server

import (
	"io"
	"sync/atomic"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/gzip"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/limits"
)

// freelyUnpacked is what a compressed request may unpack to whatever its own size, in bytes.
const freelyUnpacked = 1 << 20

// countingReader counts the bytes that are read.
type countingReader struct {
	io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

// unpackReader fails once an unpacker has made more of what it read than a ratio allows.
type unpackReader struct {
	io.Reader // the unpacker
	packed    *countingReader
	ratio     int
	n         int64 // bytes unpacked
}

func (u *unpackReader) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	if u.n += int64(n); u.n > freelyUnpacked && u.n > int64(u.ratio)*u.packed.n {
		return 0, oip.Errorf(oip.TooLarge, "", "the request unpacks to more than %d times its size, the limit of this "+
			"server (server.limits.unpack_ratio): send it uncompressed", u.ratio)
	}
	return n, err
}

// Close gives the unpacker back, where it can be given back.
func (u *unpackReader) Close() error {
	if c, ok := u.Reader.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// boundedCompressor is a gRPC compressor that refuses to unpack much more than it receives.
type boundedCompressor struct{ encoding.Compressor }

// grpcUnpackRatio is the ratio for all gRPC messages: grpc-go has one registry of compressors for the whole process.
// The largest ratio that any server was given counts.
var grpcUnpackRatio atomic.Int64

func init() {
	grpcUnpackRatio.Store(limits.UnpackRatio)
	encoding.RegisterCompressor(boundedCompressor{encoding.GetCompressor(gzip.Name)})
}

// allowUnpackRatio raises the ratio for gRPC messages.
func allowUnpackRatio(ratio int) {
	for {
		old := grpcUnpackRatio.Load()
		if int64(ratio) <= old || grpcUnpackRatio.CompareAndSwap(old, int64(ratio)) {
			return
		}
	}
}

// Decompress implements encoding.Compressor.
func (c boundedCompressor) Decompress(r io.Reader) (io.Reader, error) {
	packed := &countingReader{Reader: r}
	z, err := c.Compressor.Decompress(packed)
	if err != nil {
		return nil, err
	}
	return &unpackReader{Reader: z, packed: packed, ratio: int(grpcUnpackRatio.Load())}, nil
}
