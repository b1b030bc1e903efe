//go:build e2e

package e2e

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// cluster is a kube-apiserver and its etcd. No controller of Kubernetes' own
// runs: a Deployment gets the status that the test writes.
type cluster struct {
	name    string
	folder  string
	address string
	ca      *authority

	etcd, apiserver *process

	// admin may do everything.
	admin   *rest.Config
	client  dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	version discovery.ServerVersionInterface
}

// startCluster starts a cluster without any custom resource.
func startCluster(name string) (c *cluster, err error) {
	folder, err := newFolder(name)
	if err != nil {
		return nil, err
	}
	c = &cluster{name: name, folder: folder}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.stop())
		}
	}()
	if c.ca, err = newAuthority(); err != nil {
		return c, err
	}
	addresses, err := freeAddresses(3)
	if err != nil {
		return c, err
	}
	c.address = addresses[0]
	if err := c.startEtcd(addresses[1], addresses[2]); err != nil {
		return c, err
	}
	if err := c.startAPIServer(addresses[1]); err != nil {
		return c, err
	}
	if err := c.connect(); err != nil {
		return c, err
	}
	return c, c.awaitReady()
}

func (c *cluster) startEtcd(client, peer string) (err error) {
	path, err := built("e2e", "etcd")
	if err != nil {
		return err
	}
	c.etcd, err = start(program{name: c.name + "-etcd", path: path, args: []string{
		"--data-dir", filepath.Join(c.folder, "etcd"), "--log-level", "warn",
		"--listen-client-urls", "http://" + client, "--advertise-client-urls", "http://" + client,
		"--listen-peer-urls", "http://" + peer, "--initial-advertise-peer-urls", "http://" + peer,
		"--initial-cluster", "default=http://" + peer,
		"--unsafe-no-fsync", // what it holds lives as long as the test
	}})
	return err
}

func (c *cluster) startAPIServer(etcd string) error {
	path, err := built("e2e", "kube-apiserver")
	if err != nil {
		return err
	}
	server, err := c.ca.server()
	if err != nil {
		return err
	}
	tokens, err := c.ca.user("service-accounts") // a key pair is all that is needed of it
	if err != nil {
		return err
	}
	files := map[string][]byte{
		"ca.crt": c.ca.pem, "server.crt": server.certificate, "server.key": server.key, "tokens.key": tokens.key,
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(c.folder, name), text, 0o600); err != nil {
			return err
		}
	}
	file := func(name string) string { return filepath.Join(c.folder, name) }
	_, port, err := net.SplitHostPort(c.address)
	if err != nil {
		return err
	}
	c.apiserver, err = start(program{name: c.name + "-kube-apiserver", path: path, args: []string{
		"--etcd-servers=http://" + etcd, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port=" + port,
		"--client-ca-file=" + file("ca.crt"), "--tls-cert-file=" + file("server.crt"), "--tls-private-key-file=" + file("server.key"), "--cert-dir=" + c.folder,
		"--service-account-key-file=" + file("tokens.key"), "--service-account-signing-key-file=" + file("tokens.key"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local", "--service-cluster-ip-range=10.0.0.0/24",
		// Nobody makes service accounts without a controller manager, and there is
		// no other API server to agree with.
		"--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount", "--endpoint-reconciler-type=none",
		// Clients of a test come in bursts, and a stop must not wait for watches.
		"--enable-priority-and-fairness=false", "--max-requests-inflight=0", "--shutdown-delay-duration=0s", "--v=1",
	}})
	return err
}

func (c *cluster) connect() (err error) {
	if c.admin, err = c.user("admin", "system:masters"); err != nil {
		return err
	}
	if c.client, err = dynamic.NewForConfig(c.admin); err != nil {
		return err
	}
	disco, err := discovery.NewDiscoveryClientForConfig(c.admin)
	if err != nil {
		return err
	}
	c.version = disco
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco))
	return nil
}

// awaitReady waits until the API server answers and its own objects are there.
func (c *cluster) awaitReady() error {
	return await(c.name+" is ready", func() error {
		disco, err := discovery.NewDiscoveryClientForConfig(c.admin)
		if err != nil {
			return err
		}
		if _, err := disco.RESTClient().Get().AbsPath("/readyz").DoRaw(context.Background()); err != nil {
			return err
		}
		_, err = c.client.Resource(namespaces).Get(context.Background(), "default", getOptions)
		return err
	}, c.etcd, c.apiserver)
}

// user returns how a user with these groups speaks to the API server.
func (c *cluster) user(name string, groups ...string) (*rest.Config, error) {
	p, err := c.ca.user(name, groups...)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:            "https://" + c.address,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.ca.pem, CertData: p.certificate, KeyData: p.key},
		// Waiting for a test's own limit tells nothing about what is tested.
		QPS: -1, WarningHandler: rest.NoWarnings{},
	}, nil
}

// kubeconfig writes a file by which a program speaks to the API server as a
// user, with a default namespace, and returns its path.
func (c *cluster) kubeconfig(user *rest.Config, name, namespace string) (string, error) {
	path := filepath.Join(c.folder, name+".kubeconfig")
	return path, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"e2e": {Server: user.Host, CertificateAuthorityData: user.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"e2e": {ClientCertificateData: user.CertData, ClientKeyData: user.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"e2e": {Cluster: "e2e", AuthInfo: "e2e", Namespace: namespace}},
		CurrentContext: "e2e",
	}, path)
}

// stop ends the API server before etcd: one whose etcd is gone hangs for
// minutes.
func (c *cluster) stop() error {
	var errs []error
	for _, p := range []*process{c.apiserver, c.etcd} {
		if p != nil {
			errs = append(errs, p.stop())
		}
	}
	return errors.Join(errs...)
}
