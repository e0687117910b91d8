package fetch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/internal/models/repository"
)

// Defaults of Config.
const (
	DefaultBytes   = 64 << 30
	DefaultFiles   = 10_000
	DefaultTimeout = 30 * time.Minute
	DefaultTries   = 5
	firstPause     = time.Second // between two tries; it doubles
)

// Config says from where models may come and how large they may be.
type Config struct {
	// Claims is the folder in which volumes are mounted by the names of their claims, Secrets that in which secrets are
	// mounted by their names, a file for each key. "" is none.
	Claims, Secrets string
	// Cache is a folder for models with a digest, which several workers of a machine share; "" is none.
	Cache string
	// CacheBytes is how much the cache may hold; 0 is no limit. The models that were not used for longest go first.
	CacheBytes int64
	// Bytes and Files bound one model, unpacked; 0 means DefaultBytes and DefaultFiles.
	Bytes int64
	Files int
	// Timeout bounds the fetch of one model, with all its Tries; 0 means DefaultTimeout and DefaultTries.
	Timeout time.Duration
	Tries   int
	// Transport is for tests; nil takes the default, with the proxies of the environment.
	Transport http.RoundTripper
	// Insecure is for tests: registries and object stores without TLS.
	Insecure bool
}

// Model is where a model is and what it has to be.
type Model struct {
	URI    string
	SHA256 string // 64 hexadecimal digits of the file or archive; "" where the URI pins it or nothing does
	Secret string // by name; "" for none
}

// Permanent is an error that another try will not mend: a wrong digest, an archive that writes outside of its folder, a
// URI that cannot be understood.
type Permanent struct{ Err error }

// Error implements error.
func (p *Permanent) Error() string { return p.Err.Error() }

// Unwrap returns Err.
func (p *Permanent) Unwrap() error { return p.Err }

func permanent(format string, args ...any) error { return &Permanent{fmt.Errorf(format, args...)} }

// Fetcher fetches models.
type Fetcher struct{ c Config }

// New returns a fetcher.
func New(c Config) *Fetcher {
	if c.Bytes <= 0 {
		c.Bytes = DefaultBytes
	}
	if c.Files <= 0 {
		c.Files = DefaultFiles
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Tries <= 0 {
		c.Tries = DefaultTries
	}
	if c.Transport == nil {
		c.Transport = http.DefaultTransport
	}
	return &Fetcher{c}
}

// Fetch puts a model into the repository, as a folder of its name. It does nothing where that is there. The error is a
// *Permanent where another try will not mend it.
func (f *Fetcher) Fetch(ctx context.Context, name string, m Model, repo string) error {
	if err := repository.CheckName(name); err != nil {
		return &Permanent{err}
	}
	target := filepath.Join(repo, name)
	if _, err := os.Stat(target); err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, f.c.Timeout)
	defer cancel()
	pause := firstPause
	for try := 1; ; try++ {
		err := f.try(ctx, name, m, repo)
		var p *Permanent
		if err == nil || errors.As(err, &p) || try >= f.c.Tries {
			return named(name, m, err)
		}
		select {
		case <-ctx.Done():
			return named(name, m, errors.Join(err, context.Cause(ctx)))
		case <-time.After(pause):
		}
		pause *= 2
	}
}

func named(name string, m Model, err error) error {
	if err == nil {
		return nil
	}
	u := m.URI
	if x, bad := url.Parse(u); bad == nil {
		u = x.Redacted()
	}
	return fmt.Errorf("model %s from %s: %w", name, u, err)
}

// try fetches once.
func (f *Fetcher) try(ctx context.Context, name string, m Model, repo string) error {
	key, err := digestOf(m)
	if err != nil {
		return err
	}
	if f.c.Cache != "" && key != "" {
		return f.cached(ctx, name, m, key, repo)
	}
	return f.into(ctx, name, m, repo)
}

// into fetches a model into a temporary folder beside its place, and moves it there once it is whole.
func (f *Fetcher) into(ctx context.Context, name string, m Model, repo string) error {
	temp, err := os.MkdirTemp(repo, ".fetch-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	if err := os.Mkdir(filepath.Join(temp, "tree"), 0o755); err != nil {
		return err
	}
	t, err := newTree(filepath.Join(temp, "tree"), f.c.Bytes, f.c.Files)
	if err != nil {
		return err
	}
	defer t.close()
	if err := f.get(ctx, m, t, temp); err != nil {
		return err
	}
	top, err := t.arrange(filepath.Join(temp, "model"))
	if err != nil {
		return err
	}
	return moveTo(top, filepath.Join(repo, name))
}

// moveTo renames a folder. Another process may have put the same there meanwhile.
func moveTo(from, to string) error {
	err := os.Rename(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	if _, there := os.Stat(to); there == nil {
		return nil
	}
	return err
}

var hexDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// digestOf returns the digest by which a model is known; "" where none pins it.
func digestOf(m Model) (string, error) {
	if m.SHA256 != "" {
		d := strings.TrimPrefix(m.SHA256, "sha256:")
		if !hexDigest.MatchString(d) {
			return "", permanent("sha256 is %.80q, want 64 hexadecimal digits", m.SHA256)
		}
		return d, nil
	}
	if rest, ok := strings.CutPrefix(m.URI, "oci://"); ok {
		_, d, _ := strings.Cut(rest, "@sha256:")
		if !hexDigest.MatchString(d) {
			return "", permanent("an image has to be pinned by its digest: oci://IMAGE@sha256:...")
		}
		return d, nil
	}
	return "", nil
}

// get has the model's source fill a tree. temp is for what is downloaded.
func (f *Fetcher) get(ctx context.Context, m Model, t *tree, temp string) error {
	u, err := url.Parse(m.URI)
	if err != nil {
		return permanent("the URI cannot be read: %w", err)
	}
	switch u.Scheme {
	case "file":
		if u.Host != "" || !filepath.IsAbs(u.Path) {
			return permanent("want file:///PATH, a whole path of this machine")
		}
		return f.local(m, filepath.Dir(filepath.Clean(u.Path)), filepath.Base(u.Path), t, temp)
	case "pvc":
		if f.c.Claims == "" {
			return permanent("there are no volumes here")
		}
		if u.Host == "" || strings.ContainsAny(u.Host, "/\\") || strings.HasPrefix(u.Host, ".") {
			return permanent("want pvc://CLAIM/PATH")
		}
		return f.local(m, filepath.Join(f.c.Claims, u.Host), strings.Trim(u.Path, "/"), t, temp)
	case "https":
		return f.https(ctx, m, u, t, temp)
	case "s3":
		return f.s3(ctx, m, u, t, temp)
	case "oci":
		return f.oci(ctx, m, t)
	}
	return permanent("the scheme %.20q is not known: there is file, pvc, https, s3 and oci", u.Scheme)
}

// secret reads a key of a model's secret; "" where there is none.
func (f *Fetcher) secret(m Model, key string) (string, error) {
	if m.Secret == "" || f.c.Secrets == "" {
		return "", nil
	}
	root, err := os.OpenRoot(f.c.Secrets)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	text, err := root.ReadFile(filepath.Join(m.Secret, key))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("secret %s: %w", m.Secret, err)
	}
	return strings.TrimSpace(string(text)), nil
}
