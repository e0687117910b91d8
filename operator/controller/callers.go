package controller

import (
	"cmp"
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/cell"
)

// servicePorts are those of a fleet's Service. Gateways and meshes read from the protocol whether they are to encrypt.
func servicePorts(encrypted bool) []corev1.ServicePort {
	port := func(name string, number int32) corev1.ServicePort {
		return corev1.ServicePort{Name: name, Port: number, TargetPort: intstr.FromString(name),
			Protocol: corev1.ProtocolTCP}
	}
	http, grpc := port("http", portHTTP), port("grpc", portGRPC)
	grpc.AppProtocol = ptr.To("kubernetes.io/h2c")
	if encrypted {
		http.AppProtocol, grpc.AppProtocol = ptr.To("https"), ptr.To("https")
	}
	return []corev1.ServicePort{http, grpc}
}

// tlsArgs are the dispatchers' arguments for TLS.
func tlsArgs(t *v1alpha1.FleetTLS) (out []string) {
	if t == nil {
		return nil
	}
	out = append(out, "--tls-cert="+cell.FileCert, "--tls-key="+cell.FileCertKey)
	if t.ClientCA != nil {
		out = append(out, "--client-ca="+cell.FileClientCA)
		if t.ClientOptional {
			out = append(out, "--client-optional")
		}
	}
	return out
}

// mounted is a volume of a dispatcher and the folder that it is mounted at.
type mounted struct {
	corev1.Volume
	folder string
}

// callerFiles are the Secrets and ConfigMaps by which callers are known. Whole volumes are mounted, so that changes
// reach the files.
func callerFiles(spec *v1alpha1.FleetSpec) (out []mounted) {
	mode := ptr.To[int32](0o440) // for the group of the pod's files
	add := func(name, file string, from corev1.VolumeSource) {
		out = append(out, mounted{corev1.Volume{Name: name, VolumeSource: from}, path.Dir(file)})
	}
	secret := func(name, secret string, items ...string) {
		v := &corev1.SecretVolumeSource{SecretName: secret, DefaultMode: mode, Items: paths(items)}
		add(name, items[1], corev1.VolumeSource{Secret: v})
	}
	configMap := func(name, configMap string, items ...string) {
		v := &corev1.ConfigMapVolumeSource{DefaultMode: mode, Items: paths(items)}
		v.Name = configMap
		add(name, items[1], corev1.VolumeSource{ConfigMap: v})
	}
	if t := spec.TLS; t != nil {
		secret("tls", t.Secret, corev1.TLSCertKey, cell.FileCert, corev1.TLSPrivateKeyKey, cell.FileCertKey)
		if ca := t.ClientCA; ca != nil {
			entry := cmp.Or(ca.Key, corev1.ServiceAccountRootCAKey)
			if ca.Secret != "" {
				secret("client-ca", ca.Secret, entry, cell.FileClientCA)
			} else {
				configMap("client-ca", ca.ConfigMap, entry, cell.FileClientCA)
			}
		}
	}
	if a := spec.Access; a != nil {
		if a.Keys != "" {
			secret("access", a.Keys, cell.EntryKeys, cell.FileKeys)
		}
		if a.JWT != nil && a.JWT.KeySet != "" {
			configMap("tokens", a.JWT.KeySet, path.Base(cell.FileTokenKeys), cell.FileTokenKeys)
		}
	}
	return out
}

// paths are items of a volume: pairs of an entry and the file that it is to be.
func paths(items []string) (out []corev1.KeyToPath) {
	for k := 0; k+1 < len(items); k += 2 {
		out = append(out, corev1.KeyToPath{Key: items[k], Path: path.Base(items[k+1])})
	}
	return out
}
