package server

import (
	"compress/flate"
	"compress/zlib"
	"io"
	"sync"

	"google.golang.org/grpc/encoding"
)

// deflate is the gRPC compressor "deflate", the zlib format, which grpc-go lacks and clients in other languages have.
type deflate struct{ writers, readers sync.Pool }

func init() { encoding.RegisterCompressor(boundedCompressor{&deflate{}}) }

// Name implements encoding.Compressor.
func (*deflate) Name() string { return "deflate" }

// Compress implements encoding.Compressor.
func (d *deflate) Compress(w io.Writer) (io.WriteCloser, error) {
	if z, ok := d.writers.Get().(*zlib.Writer); ok {
		z.Reset(w)
		return &deflateWriter{z, d}, nil
	}
	z, err := zlib.NewWriterLevel(w, flate.BestSpeed)
	return &deflateWriter{z, d}, err
}

// deflateWriter gives its packer back once it is closed.
type deflateWriter struct {
	*zlib.Writer
	of *deflate
}

// Close implements io.Closer.
func (w *deflateWriter) Close() error {
	defer w.of.writers.Put(w.Writer)
	return w.Writer.Close()
}

// Decompress implements encoding.Compressor.
func (d *deflate) Decompress(r io.Reader) (io.Reader, error) {
	if z, ok := d.readers.Get().(io.Reader); ok {
		if err := z.(zlib.Resetter).Reset(r, nil); err != nil {
			return nil, err
		}
		return &deflateReader{z, d}, nil
	}
	z, err := zlib.NewReader(r)
	if err != nil {
		return nil, err
	}
	return &deflateReader{z, d}, nil
}

// deflateReader gives its unpacker back at its end.
type deflateReader struct {
	io.Reader
	of *deflate
}

// Read implements io.Reader.
func (r *deflateReader) Read(p []byte) (int, error) {
	if r.Reader == nil {
		return 0, io.EOF
	}
	n, err := r.Reader.Read(p)
	if err == io.EOF {
		r.of.readers.Put(r.Reader)
		r.Reader = nil
	}
	return n, err
}
