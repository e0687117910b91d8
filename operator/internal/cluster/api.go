package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The ports of a control plane.
const (
	portEtcd = iota
	portEtcdPeer
	portAPI
	portsInAll
)

func (c *Cluster) port(which int) string { return strconv.Itoa(c.ports[which]) }

// servicesRange is what Services have their addresses of. Nothing routes to them.
const servicesRange = "10.96.0.0/16"

func (c *Cluster) certificates() (err error) {
	if c.auth, err = NewAuthority(c.dir); err != nil {
		return err
	}
	hosts := []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	addresses := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)}
	for i := range blocks { // the block is not taken yet
		addresses = append(addresses, net.IPv4(10, byte(200+i/4), byte(i%4*64+32), 1))
	}
	for _, it := range []struct {
		file, user string
		group      []string
		hosts      []string
		addresses  []net.IP
	}{
		{"apiserver", "kube-apiserver", nil, hosts, addresses},
		{"front-proxy", "front-proxy-client", nil, nil, nil},
		{"kube-controller-manager", "system:kube-controller-manager", nil, nil, nil},
		{"kube-scheduler", "system:kube-scheduler", nil, nil, nil},
		{"kwok", "kwok", []string{"system:masters"}, nil, nil},
		{"admin", "admin", []string{"system:masters"}, nil, nil},
	} {
		name := pkix.Name{CommonName: it.user, Organization: it.group}
		if _, _, err = c.auth.Issue(it.file, name, it.hosts, it.addresses); err != nil {
			return err
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	_, err = c.auth.keyPair("service-accounts", key)
	return err
}

// startAPI starts etcd and the API server and makes clients of it.
func (c *Cluster) startAPI(ctx context.Context) (err error) {
	url, peer := "http://127.0.0.1:"+c.port(portEtcd), "http://127.0.0.1:"+c.port(portEtcdPeer)
	c.etcd, err = start(c.dir, filepath.Join(c.tools, "etcd"),
		"--data-dir="+filepath.Join(c.dir, "etcd"), "--unsafe-no-fsync",
		"--listen-client-urls="+url, "--advertise-client-urls="+url,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer)
	if err != nil {
		return err
	}
	if err = c.startServer(); err != nil {
		return err
	}
	if err = c.clients(); err != nil {
		return err
	}
	return c.waitReady(ctx)
}

func (c *Cluster) startServer() (err error) {
	a := c.auth
	args := []string{
		"--etcd-servers=http://127.0.0.1:" + c.port(portEtcd),
		"--bind-address=0.0.0.0", "--secure-port=" + c.port(portAPI), "--endpoint-reconciler-type=none",
		"--cert-dir=" + c.dir, "--tls-cert-file=" + a.path("apiserver.crt"),
		"--tls-private-key-file=" + a.path("apiserver.key"),
		"--client-ca-file=" + a.path("ca.crt"), "--authorization-mode=RBAC", "--allow-privileged",
		"--service-cluster-ip-range=" + servicesRange,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + a.path("service-accounts.key"),
		"--service-account-signing-key-file=" + a.path("service-accounts.key"),
		"--requestheader-client-ca-file=" + a.path("ca.crt"), "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + a.path("front-proxy.crt"), "--proxy-client-key-file=" + a.path("front-proxy.key"),
		"--default-not-ready-toleration-seconds=2", "--default-unreachable-toleration-seconds=2",
		"--max-requests-inflight=2000", "--max-mutating-requests-inflight=1000",
	}
	if !c.options.Controllers {
		// It asks for service accounts, which the controller manager makes.
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	c.apiserver, err = start(c.dir, filepath.Join(c.tools, "kube-apiserver"), args...)
	return err
}

// clients makes the configurations of clients, as values and as files.
func (c *Cluster) clients() (err error) {
	c.URL = "https://127.0.0.1:" + c.port(portAPI)
	for _, user := range []string{"admin", "kube-controller-manager", "kube-scheduler", "kwok"} {
		if err = c.kubeconfig(user); err != nil {
			return err
		}
	}
	c.Kubeconfig = c.auth.path("admin.kubeconfig")
	if c.Config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig); err != nil {
		return err
	}
	c.Config.QPS, c.Config.Burst = 1000, 2000
	return nil
}

// kubeconfig writes a client's configuration to USER.kubeconfig.
func (c *Cluster) kubeconfig(user string) error {
	out := clientcmdapi.NewConfig()
	out.Clusters["test"] = &clientcmdapi.Cluster{Server: c.URL, CertificateAuthority: c.auth.path("ca.crt")}
	out.AuthInfos[user] = &clientcmdapi.AuthInfo{
		ClientCertificate: c.auth.path(user + ".crt"), ClientKey: c.auth.path(user + ".key"),
	}
	out.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: user}
	out.CurrentContext = "test"
	return clientcmd.WriteToFile(*out, c.auth.path(user+".kubeconfig"))
}

// waitReady waits until the API server answers.
func (c *Cluster) waitReady(ctx context.Context) error {
	set, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	err = c.await(ctx, c.apiserver, func() error {
		one, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		var status int
		if err := set.RESTClient().Get().AbsPath("/readyz").Do(one).StatusCode(&status).Error(); err != nil {
			return err
		}
		if status != http.StatusOK {
			return fmt.Errorf("/readyz answers %d", status)
		}
		return nil
	})
	if err != nil || c.Client != nil {
		return err
	}
	c.Client, err = client.New(c.Config, client.Options{Scheme: Scheme()})
	return err
}

// await waits until ok returns nil, unless the program ends before.
func (c *Cluster) await(ctx context.Context, p *process, ok func() error) error {
	var last error
	for {
		if last = ok(); last == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s %w: %w", p.name, errEnded, p.err)
		case <-c.etcd.done:
			return fmt.Errorf("%s %w: %w", c.etcd.name, errEnded, c.etcd.err)
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", p.name, ctx.Err(), last)
		case <-time.After(poll):
		}
	}
}

// ConfigOf returns the configuration of a client that is called user and belongs to groups, to test what roles allow.
func (c *Cluster) ConfigOf(user string, groups ...string) *rest.Config {
	out := rest.CopyConfig(c.Config)
	out.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return out
}

// CA is the certificate of the authority that the API server shows, PEM.
func (c *Cluster) CA() ([]byte, error) { return os.ReadFile(c.auth.path("ca.crt")) }
