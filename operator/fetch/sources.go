package fetch

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// local takes a file or a folder of this machine. Links in it may not lead out of the folder.
func (f *Fetcher) local(m Model, folder, at string, t *tree, temp string) error {
	root, err := os.OpenRoot(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return permanent("%s: there is no such folder", folder)
	}
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if at == "" {
		at = "."
	}
	if at, err = clean(at); err != nil {
		return err
	}
	st, err := root.Stat(at)
	if errors.Is(err, fs.ErrNotExist) {
		return permanent("%s: there is no such file", filepath.Join(folder, at))
	}
	if err != nil {
		return err
	}
	if st.IsDir() {
		if m.SHA256 != "" {
			return permanent("sha256 is given for a folder: it is for a file or an archive")
		}
		return t.copyOf(root, at)
	}
	from, err := root.Open(at)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	return f.receive(from, m, at, t, temp)
}

// receive takes a stream as a download.
func (f *Fetcher) receive(from io.Reader, m Model, at string, t *tree, temp string) error {
	digest, err := digestOf(m)
	if err != nil {
		return err
	}
	file := filepath.Join(temp, "download")
	if err := download(from, file, digest, f.c.Bytes); err != nil {
		return err
	}
	if err := t.unpack(file, fileName(at)); err != nil {
		return err
	}
	return os.Remove(file)
}

// https downloads a file whose digest is known.
func (f *Fetcher) https(ctx context.Context, m Model, u *url.URL, t *tree, temp string) error {
	if m.SHA256 == "" {
		return permanent("a model from https needs its sha256, so that what is served is what was meant")
	}
	token, err := f.secret(m, "token")
	if err != nil {
		return err
	}
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return permanent("%w", err)
	}
	if token != "" {
		ask.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: f.c.Transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if r.URL.Scheme != "https" {
			return permanent("the server redirects to %s, which is not encrypted", r.URL.Scheme)
		}
		if len(via) >= 10 {
			return permanent("the server redirects more than ten times")
		}
		return nil
	}}
	answer, err := client.Do(ask)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	switch {
	case answer.StatusCode == http.StatusOK:
	case answer.StatusCode >= 500, answer.StatusCode == http.StatusTooManyRequests,
		answer.StatusCode == http.StatusRequestTimeout:
		return fmt.Errorf("the server answers %s", answer.Status)
	default:
		return permanent("the server answers %s", answer.Status)
	}
	return f.receive(answer.Body, m, u.Path, t, temp)
}

// s3 downloads an object, or all below a prefix that ends with a slash. Environment variables and the machine's role
// give access where the model's secret does not.
func (f *Fetcher) s3(ctx context.Context, m Model, u *url.URL, t *tree, temp string) error {
	keys := map[string]string{}
	for _, k := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_REGION",
	} {
		v, err := f.secret(m, k)
		if err != nil {
			return err
		}
		if keys[k] = v; v == "" {
			keys[k] = os.Getenv(k)
		}
	}
	endpoint, secure := "s3.amazonaws.com", true
	if e := keys["AWS_ENDPOINT_URL"]; e != "" {
		x, err := url.Parse(e)
		if err != nil || x.Host == "" {
			return permanent("AWS_ENDPOINT_URL is %.100q, want https://HOST", e)
		}
		if endpoint, secure = x.Host, x.Scheme == "https"; !secure && !f.c.Insecure {
			return permanent("AWS_ENDPOINT_URL %.100q is not encrypted", e)
		}
	}
	access := credentials.NewChainCredentials([]credentials.Provider{&credentials.IAM{}})
	if id := keys["AWS_ACCESS_KEY_ID"]; id != "" {
		access = credentials.NewStaticV4(id, keys["AWS_SECRET_ACCESS_KEY"], keys["AWS_SESSION_TOKEN"])
	}
	client, err := minio.New(endpoint, &minio.Options{
		Creds: access, Secure: secure, Region: keys["AWS_REGION"], Transport: f.c.Transport,
	})
	if err != nil {
		return permanent("%w", err)
	}
	bucket, key := u.Host, strings.TrimPrefix(u.Path, "/")
	if bucket == "" || key == "" {
		return permanent("want s3://BUCKET/KEY, or s3://BUCKET/PREFIX/ for all below it")
	}
	if !strings.HasSuffix(key, "/") {
		o, err := client.GetObject(ctx, bucket, key, minio.GetObjectOptions{})
		if err != nil {
			return s3Error(err)
		}
		defer func() { _ = o.Close() }()
		return s3Error(f.receive(o, m, key, t, temp))
	}
	if m.SHA256 != "" {
		return permanent("sha256 is given for a folder: it is for a file or an archive")
	}
	for x := range client.ListObjects(ctx, bucket, minio.ListObjectsOptions{Prefix: key, Recursive: true}) {
		if x.Err != nil {
			return s3Error(x.Err)
		}
		rel := strings.TrimPrefix(x.Key, key)
		if rel == "" || strings.HasSuffix(rel, "/") {
			continue
		}
		o, err := client.GetObject(ctx, bucket, x.Key, minio.GetObjectOptions{})
		if err != nil {
			return s3Error(err)
		}
		err = t.add(rel, o)
		_ = o.Close()
		if err != nil {
			return s3Error(err)
		}
	}
	return nil
}

// s3Error tells apart what another try may mend.
func s3Error(err error) error {
	if err == nil {
		return nil
	}
	var r minio.ErrorResponse
	if !errors.As(err, &r) {
		return err
	}
	switch r.Code {
	case "NoSuchKey", "NoSuchBucket", "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch":
		return permanent("the object store answers %s: %s", r.Code, r.Message)
	}
	return err
}

// Titles of layers that are files.
const titleAnnotation = "org.opencontainers.image.title"

// modelsOfImage is the folder of images of models that holds them.
const modelsOfImage = "models/"

// oci takes the files of an artifact, or of an image: those below /models where it has that folder, else all. The
// library checks the digests of the manifest and of all layers.
func (f *Fetcher) oci(ctx context.Context, m Model, t *tree) error {
	var options []name.Option
	if f.c.Insecure {
		options = append(options, name.Insecure)
	}
	ref, err := name.NewDigest(strings.TrimPrefix(m.URI, "oci://"), options...)
	if err != nil {
		return permanent("an image has to be pinned by its digest: %w", err)
	}
	auth := authn.Anonymous
	token, err := f.secret(m, "token")
	if err != nil {
		return err
	}
	user, err := f.secret(m, "username")
	if err != nil {
		return err
	}
	switch {
	case user != "":
		password, err := f.secret(m, "password")
		if err != nil {
			return err
		}
		auth = &authn.Basic{Username: user, Password: password}
	case token != "":
		auth = &authn.Bearer{Token: token}
	}
	img, err := remote.Image(ref, remote.WithContext(ctx), remote.WithAuth(auth), remote.WithTransport(f.c.Transport))
	if err != nil {
		return ociError(err)
	}
	manifest, err := img.Manifest()
	if err != nil {
		return ociError(err)
	}
	files := 0
	for _, l := range manifest.Layers {
		title := l.Annotations[titleAnnotation]
		if title == "" {
			continue
		}
		files++
		if err := addLayer(img, l.Digest, title, t); err != nil {
			return ociError(err)
		}
	}
	if files > 0 {
		return nil
	}
	return ociError(flatten(img, t))
}

func addLayer(img v1.Image, digest v1.Hash, title string, t *tree) error {
	layer, err := img.LayerByDigest(digest)
	if err != nil {
		return err
	}
	from, err := layer.Compressed() // as it is: a file is no layer of a file system
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	return t.add(title, from)
}

// flatten takes the files of an image's file system.
func flatten(img v1.Image, t *tree) error {
	under := func(only bool) (int, error) {
		from := mutate.Extract(img)
		defer func() { _ = from.Close() }()
		return t.takeImage(from, only)
	}
	n, err := under(true)
	if err != nil || n > 0 {
		return err
	}
	_, err = under(false)
	return err
}

// takeImage takes the regular files of a file system, only those below /models or all.
func (t *tree) takeImage(from io.Reader, only bool) (n int, err error) {
	r := tar.NewReader(from)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		at := strings.TrimPrefix(path.Clean("/"+h.Name), "/")
		if h.Typeflag != tar.TypeReg || only && !strings.HasPrefix(at, modelsOfImage) {
			continue
		}
		if only {
			at = strings.TrimPrefix(at, modelsOfImage)
		}
		if err := t.add(at, r); err != nil {
			return n, err
		}
		n++
	}
}

// ociError tells apart what another try may mend.
func ociError(err error) error {
	var e *transport.Error
	if errors.As(err, &e) && e.StatusCode >= 400 && e.StatusCode < 500 && !e.Temporary() {
		return permanent("the registry answers: %w", err)
	}
	if err != nil && strings.Contains(err.Error(), "error verifying sha256") {
		return permanent("wrong digest: %w", err)
	}
	return err
}
