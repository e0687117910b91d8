package kubelet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// volumeTimeout bounds how long a pod waits for what its volumes are made of.
const volumeTimeout = 2 * time.Minute

// volumes fills the pod's volumes. What they are made of may come later than the pod: it is waited for.
func (p *pod) volumes() error {
	ctx, cancel := context.WithTimeout(p.ctx, volumeTimeout)
	defer cancel()
	for i := range p.spec.Spec.Volumes {
		v := &p.spec.Spec.Volumes[i]
		dir := filepath.Join(p.folder, "volumes", v.Name)
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return err
		}
		for {
			err := p.volume(ctx, v, dir)
			if err == nil {
				break
			}
			if ctx.Err() != nil || p.over() {
				return fmt.Errorf("volume %s: %w", v.Name, err)
			}
			p.pause(200 * time.Millisecond)
		}
	}
	return nil
}

// renewEvery is how often the files of ConfigMaps and Secrets are written anew. A kubelet does it about every minute.
const renewEvery = 5 * time.Second

// renew keeps the volumes of ConfigMaps and Secrets as these are, until the pod has ended.
func (p *pod) renew(ended <-chan struct{}) {
	for {
		select {
		case <-ended:
			return
		case <-time.After(renewEvery):
		}
		for i := range p.spec.Spec.Volumes {
			v := &p.spec.Spec.Volumes[i]
			if v.ConfigMap == nil && v.Secret == nil {
				continue
			}
			ctx, cancel := context.WithTimeout(p.ctx, volumeTimeout)
			_ = p.volume(ctx, v, filepath.Join(p.folder, "volumes", v.Name)) // what is there stays
			cancel()
		}
	}
}

func (p *pod) volume(ctx context.Context, v *corev1.Volume, dir string) error {
	switch {
	case v.EmptyDir != nil:
		return nil
	case v.HostPath != nil:
		if err := os.Remove(dir); err != nil && !os.IsNotExist(err) {
			return err
		}
		return os.Symlink(v.HostPath.Path, dir)
	case v.PersistentVolumeClaim != nil:
		return p.claim(ctx, v.PersistentVolumeClaim.ClaimName, dir)
	case v.ConfigMap != nil:
		return p.configMap(ctx, v.ConfigMap.Name, v.ConfigMap.Items, v.ConfigMap.Optional, dir)
	case v.Secret != nil:
		return p.secret(ctx, v.Secret.SecretName, v.Secret.Items, v.Secret.Optional, dir)
	case v.Projected != nil:
		for i := range v.Projected.Sources {
			if err := p.projected(ctx, &v.Projected.Sources[i], dir); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("its kind is not known here")
}

// claim is the folder of a persistent volume of this machine, which a hostPath volume names.
func (p *pod) claim(ctx context.Context, name, dir string) error {
	c, err := p.k.api.CoreV1().PersistentVolumeClaims(p.spec.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if c.Spec.VolumeName == "" {
		return fmt.Errorf("claim %s is not bound", name)
	}
	v, err := p.k.api.CoreV1().PersistentVolumes().Get(ctx, c.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if v.Spec.HostPath == nil {
		return fmt.Errorf("persistent volume %s is no folder of this machine", v.Name)
	}
	if err := os.Remove(dir); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.Symlink(v.Spec.HostPath.Path, dir)
}

func (p *pod) configMap(ctx context.Context, name string, items []corev1.KeyToPath, optional *bool, dir string) error {
	m, err := p.k.api.CoreV1().ConfigMaps(p.spec.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return unless(optional, err)
	}
	data := map[string][]byte{}
	for k, v := range m.Data {
		data[k] = []byte(v)
	}
	for k, v := range m.BinaryData {
		data[k] = v
	}
	return write(dir, data, items)
}

func (p *pod) secret(ctx context.Context, name string, items []corev1.KeyToPath, optional *bool, dir string) error {
	s, err := p.k.api.CoreV1().Secrets(p.spec.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return unless(optional, err)
	}
	return write(dir, s.Data, items)
}

func (p *pod) projected(ctx context.Context, s *corev1.VolumeProjection, dir string) error {
	switch {
	case s.ServiceAccountToken != nil:
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: s.ServiceAccountToken.ExpirationSeconds,
			BoundObjectRef: &authenticationv1.BoundObjectReference{
				Kind: "Pod", APIVersion: "v1", Name: p.spec.Name, UID: p.uid},
		}}
		if a := s.ServiceAccountToken.Audience; a != "" {
			request.Spec.Audiences = []string{a}
		}
		got, err := p.k.api.CoreV1().ServiceAccounts(p.spec.Namespace).CreateToken(ctx, p.spec.Spec.ServiceAccountName,
			request, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		return write(dir, map[string][]byte{s.ServiceAccountToken.Path: []byte(got.Status.Token)}, nil)
	case s.ConfigMap != nil:
		return p.configMap(ctx, s.ConfigMap.Name, s.ConfigMap.Items, s.ConfigMap.Optional, dir)
	case s.Secret != nil:
		return p.secret(ctx, s.Secret.Name, s.Secret.Items, s.Secret.Optional, dir)
	case s.DownwardAPI != nil:
		data := map[string][]byte{}
		for _, f := range s.DownwardAPI.Items {
			if f.FieldRef == nil {
				continue
			}
			value, err := p.field(f.FieldRef.FieldPath)
			if err != nil {
				return err
			}
			data[f.Path] = []byte(value)
		}
		return write(dir, data, nil)
	}
	return nil
}

// unless hides that something optional is not there.
func unless(optional *bool, err error) error {
	if optional != nil && *optional && apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// write writes keys as files: all, or those that items name.
func write(dir string, data map[string][]byte, items []corev1.KeyToPath) error {
	files := data
	if len(items) > 0 {
		files = map[string][]byte{}
		for _, i := range items {
			text, ok := data[i.Key]
			if !ok {
				return fmt.Errorf("there is no key %q", i.Key)
			}
			files[i.Path] = text
		}
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		// Readers see the old file or the new one.
		if err := os.WriteFile(path+".new", text, 0o644); err != nil {
			return err
		}
		if err := os.Rename(path+".new", path); err != nil {
			return err
		}
	}
	return nil
}
