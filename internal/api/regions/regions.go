// Package regions reads inputs from shared memory that clients have registered, and writes outputs to it.
package regions

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/sluice-serving/sluice/internal/api/memory"
	"github.com/sluice-serving/sluice/internal/api/oip"
)

const (
	// sharedFolder is where POSIX shared memory objects are files (shm_overview(7)).
	sharedFolder = "/dev/shm"
	// maxRegions bounds the regions that are registered at a time: each holds a file open.
	maxRegions = 1024
	// reservedObjects is the prefix of objects that belong to Triton's Python backend, which may run beside us.
	reservedObjects = "triton_python_backend_shm_region_"
)

// Region is a part of a shared memory object that a client has registered.
type Region struct {
	Name, Key    string
	Offset, Size int64 // in bytes
	file         *os.File
}

// Registry has the registered parts of shared memory. They are read and written as files and never mapped: a client
// that shrinks its object gets an error, where a mapping would end the process (SIGBUS). A tensor is copied once, as it
// is from a socket. It is safe for concurrent use.
type Registry struct {
	prefix string // of the names of objects, after a leading slash; "" refuses all
	folder string

	mu     sync.RWMutex
	byName map[string]*Region
}

// New returns a registry of objects whose names begin with the prefix; "" refuses all.
func New(prefix string) *Registry {
	return &Registry{prefix: prefix, folder: sharedFolder, byName: make(map[string]*Region)}
}

// Enabled returns an error where the configuration allows no shared memory.
func (r *Registry) Enabled() error {
	if r.prefix == "" {
		return oip.Errorf(oip.Unsupported, "", "Client shared memory is disabled: name the prefix of the objects that "+
			"clients may use in server.shared_memory")
	}
	return nil
}

// Register opens an object of shared memory. The object must have the size already.
func (r *Registry) Register(name, key string, offset, size uint64) error {
	if err := r.Enabled(); err != nil {
		return err
	}
	bad := func(field, format string, args ...any) error { return oip.Errorf(oip.Invalid, field, format, args...) }
	object := strings.TrimPrefix(key, "/")
	if rest := strings.TrimLeft(key, "/"); strings.HasPrefix(rest, reservedObjects) {
		object = rest // whatever stands before it, this is the reason
	}
	switch {
	case name == "":
		return bad("name", "is missing")
	case object == "" || object == "." || object == ".." || strings.ContainsAny(object, "/\x00"):
		return bad("key", "cannot register shared memory region '%.200s' - invalid shm key '%.100s': want the name of "+
			"a shared memory object", name, key)
	case strings.HasPrefix(object, reservedObjects):
		return bad("key", "cannot register shared memory region '%.200s' with key '%.200s' as the key contains the "+
			"reserved prefix '%s'", name, key, reservedObjects)
	case !strings.HasPrefix("/"+object, r.prefix):
		return bad("key", "is %.100q: this server takes objects whose names begin with %s (server.shared_memory)", key,
			r.prefix)
	case size == 0 || size > 1<<40 || offset > 1<<40:
		return bad("", "failed to register shared memory region '%.200s': invalid args: byte_size is %d from offset "+
			"%d on, want at least 1 byte inside the object", name, size, offset)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byName[name] != nil {
		return bad("", "shared memory region '%.200s' already in manager", name)
	}
	if len(r.byName) >= maxRegions {
		return bad("", "%d shared memory regions are registered, which is the most: unregister some", maxRegions)
	}
	path := filepath.Join(r.folder, object)
	// Neither a link nor a pipe is followed or waited for.
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return bad("", "Unable to open shared memory region: '%.100s'", key)
	}
	st, err := f.Stat()
	switch {
	case err != nil || !st.Mode().IsRegular():
		err = bad("", "Unable to open shared memory region: '%.100s'", key)
	case int64(offset+size) > st.Size():
		err = bad("", "failed to register shared memory region '%.200s': invalid args: it ends at byte %d, the "+
			"object '%.100s' has %d",
			name, offset+size, key, st.Size())
	default:
		r.byName[name] = &Region{name, key, int64(offset), int64(size), f}
		return nil
	}
	_ = f.Close()
	return err
}

// Unregister closes a region; all for the name "". An unknown one is no error, as in Triton.
func (r *Registry) Unregister(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n, x := range r.byName {
		if name == "" || n == name {
			_ = x.file.Close()
			delete(r.byName, n)
		}
	}
}

// List returns the region of a name, or all for the name "", by name.
func (r *Registry) List(name string) ([]*Region, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if name == "" {
		byName := func(a, b *Region) int { return strings.Compare(a.Name, b.Name) }
		return slices.SortedFunc(maps.Values(r.byName), byName), nil
	}
	x := r.byName[name]
	if x == nil {
		return nil, oip.Errorf(oip.NotFound, "", "Unable to find system shared memory region: '%.200s'", name)
	}
	return []*Region{x}, nil
}

// within returns the region of a part, and where the part begins in its object. The caller holds r.mu.
func (r *Registry) within(s oip.Shared) (*Region, int64, error) {
	x := r.byName[s.Region]
	if x == nil {
		return nil, 0, oip.Errorf(oip.Invalid, "", "Unable to find shared memory region: '%.200s'", s.Region)
	}
	if s.Offset >= x.Size && x.Size > 0 {
		return nil, 0, oip.Errorf(oip.Invalid, "", "Invalid offset for shared memory region: '%.200s': it has %d "+
			"bytes, asked for are %d from %d on", s.Region, x.Size, s.Size, s.Offset)
	}
	if s.Size > x.Size || s.Offset > x.Size-s.Size {
		return nil, 0, oip.Errorf(oip.Invalid, "", "Invalid offset + byte size for shared memory region: '%.200s': it "+
			"has %d bytes, asked for are %d from %d on", s.Region, x.Size, s.Size, s.Offset)
	}
	return x, x.Offset + s.Offset, nil
}

// Check returns an error unless a part of a region may be written.
func (r *Registry) Check(s oip.Shared) error {
	if err := r.Enabled(); err != nil {
		return err
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	_, _, err := r.within(s)
	return err
}

// read returns the contents of a part of a region, of at most limit bytes, and claims their memory.
func (r *Registry) read(s oip.Shared, limit int64, holds *memory.Claim) ([]byte, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	x, at, err := r.within(s)
	if err != nil {
		return nil, err
	}
	if s.Size > limit {
		return nil, oip.Errorf(oip.TooLarge, "", "the inputs in shared memory have more than %d bytes "+
			"(server.limits.request)", limit)
	}
	if err := holds.Take(s.Size); err != nil {
		return nil, err
	}
	data := make([]byte, s.Size)
	if _, err := x.file.ReadAt(data, at); err != nil {
		return nil, oip.Errorf(oip.Invalid, "", "shared memory region '%.200s': %d bytes from %d on are not there any "+
			"more", s.Region, s.Size, s.Offset)
	}
	return data, nil
}

// Write puts an output into a part of a region and returns the part that it takes.
func (r *Registry) Write(s oip.Shared, name string, data []byte) (*oip.Shared, error) {
	if int64(len(data)) > s.Size {
		return nil, oip.Errorf(oip.Invalid, "", "shared memory size specified with the request for output '%s' (%d "+
			"bytes) should be at least %d bytes to hold the results", name, s.Size, len(data))
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	x, at, err := r.within(s)
	if err != nil {
		return nil, err
	}
	// Writing behind its end would make the object larger.
	if st, err := x.file.Stat(); err != nil || st.Size() < at+int64(len(data)) {
		return nil, oip.Errorf(oip.Invalid, "", "shared memory region '%.200s': %d bytes from %d on are not there any "+
			"more", s.Region, s.Size, s.Offset)
	}
	if _, err := x.file.WriteAt(data, at); err != nil {
		return nil, fmt.Errorf("shared memory region '%.200s': %w", s.Region, err)
	}
	return &oip.Shared{Region: s.Region, Offset: s.Offset, Size: int64(len(data))}, nil
}

// Reader returns a reader of one request's inputs, which together have at most limit bytes. holds claims their memory.
func (r *Registry) Reader(limit int64, holds *memory.Claim) oip.Regions {
	return func(s oip.Shared) ([]byte, error) {
		if err := r.Enabled(); err != nil {
			return nil, err
		}
		data, err := r.read(s, limit, holds)
		limit -= int64(len(data))
		return data, err
	}
}
