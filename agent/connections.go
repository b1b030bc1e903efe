package agent

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/landfall-hub/landfall/internal/hubclient"
)

// restConfig says how to reach the API server: by the kubeconfig, or by the
// Pod's own account.
func restConfig(c KubernetesConfig) (*rest.Config, error) {
	if c.Kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, errors.New("this is no Pod of a cluster: name a kubeconfig (kubernetes.kubeconfig, --kubeconfig)")
		}
		if err != nil {
			return nil, fmt.Errorf("reading the Pod's account of the API server: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: c.Kubeconfig}, &clientcmd.ConfigOverrides{CurrentContext: c.Context},
	).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig %s (kubernetes.kubeconfig, --kubeconfig): %w", c.Kubeconfig, err)
	}
	return config, nil
}

// newHubClient makes the client of the hub. It reads the files that the
// settings name, and asks nobody anything.
func newHubClient(c HubConfig, version string) (*hubclient.Client, error) {
	options := hubclient.Options{URL: c.URL, Token: c.Token, TokenFile: c.TokenFile, UserAgent: "landfall-agent/" + version}
	if c.CAFile != "" {
		transport, ok := http.DefaultTransport.(*http.Transport)
		if !ok {
			return nil, errors.New("the standard transport was replaced by another kind")
		}
		pool, err := trusted(c.CAFile)
		if err != nil {
			return nil, err
		}
		own := transport.Clone()
		own.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
		options.HTTPClient = &http.Client{Transport: own}
	}
	client, err := hubclient.New(options)
	if err != nil {
		return nil, fmt.Errorf("preparing to speak to the hub (hub.url, hub.token_file): %w", err)
	}
	return client, nil
}

// trusted returns the system's certificates and those of a file.
func trusted(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading certificates for the hub (hub.ca_file): %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // a container without any
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("hub.ca_file %s holds no certificate in PEM", file)
	}
	return pool, nil
}
