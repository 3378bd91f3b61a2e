package lab

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
)

// Ports inside the run's own network.
const (
	etcdPort     = "2379"
	etcdPeerPort = "2380"
	apiPort      = "6443"
)

// insideAddress is the API server's address inside the run's network.
const insideAddress = NodeIP + ":" + apiPort

// user is a user that the API server knows by a token.
type user struct{ name, groups string }

// The cluster's users.
var (
	admin     = user{name: "admin", groups: "system:masters"}
	scheduler = user{name: "system:kube-scheduler"}
)

func kubeletUser(node string) user {
	return user{name: "system:node:" + node, groups: "system:nodes"}
}

// credentials are the keys and tokens of the control plane's parts.
type credentials struct {
	dir    string
	tokens map[string]string // by user name
}

func (c *credentials) path(name string) string { return filepath.Join(c.dir, name) }

// newCredentials writes the API server's certificate, the key of service accounts and a token for
// each user into dir.
func newCredentials(dir string, users ...user) (*credentials, error) {
	c := &credentials{dir: dir, tokens: map[string]string{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	names := []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	ips := []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(NodeIP), net.IPv4(10, 96, 0, 1)}
	certificate, key, err := cert.GenerateSelfSignedCertKey("kubernetes", ips, names)
	if err != nil {
		return nil, fmt.Errorf("making the API server's certificate: %w", err)
	}
	signing, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	signingPEM := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(signing)})
	var tokens strings.Builder
	for _, u := range users {
		random := make([]byte, 16)
		if _, err := rand.Read(random); err != nil {
			return nil, err
		}
		token := hex.EncodeToString(random)
		c.tokens[u.name] = token
		fmt.Fprintf(&tokens, "%s,%s,%s,%q\n", token, u.name, u.name, u.groups)
	}
	for name, content := range map[string][]byte{
		"apiserver.crt": certificate, "apiserver.key": key,
		"service-account.key": signingPEM, "tokens.csv": []byte(tokens.String()),
	} {
		if err := os.WriteFile(c.path(name), content, 0o600); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// kubeconfig writes a user's kubeconfig for the API server at address, and returns the file's path.
func (c *credentials) kubeconfig(name string, u user, address string) (string, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["lab"] = &clientcmdapi.Cluster{Server: "https://" + address, CertificateAuthority: c.path("apiserver.crt")}
	config.AuthInfos[u.name] = &clientcmdapi.AuthInfo{Token: c.tokens[u.name]}
	config.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: u.name}
	config.CurrentContext = "lab"
	path := c.path(name + ".kubeconfig")
	return path, clientcmd.WriteToFile(*config, path)
}

// startAPIServer starts etcd and the API server.
func (c *Cluster) startAPIServer(ctx context.Context) error {
	var err error
	c.creds, err = newCredentials(filepath.Join(c.Dir, "pki"), admin, scheduler, kubeletUser(c.NodeName))
	if err != nil {
		return err
	}
	creds := c.creds
	c.Etcd = newService(c.keeper, c.etcdSpec())
	if err := c.Etcd.Start(ctx); err != nil {
		return err
	}
	outside, err := c.keeper.Forward(ctx, NodeIP+":"+apiPort)
	if err != nil {
		return err
	}
	if c.Kubeconfig, err = creds.kubeconfig("admin", admin, outside); err != nil {
		return err
	}
	if c.InnerKubeconfig, err = creds.kubeconfig("admin-inside", admin, insideAddress); err != nil {
		return err
	}
	if err := c.connect(); err != nil {
		return err
	}
	c.APIServer = newService(c.keeper, c.apiServerSpec())
	return c.APIServer.Start(ctx)
}

// startControllers starts the controller manager and the scheduler.
func (c *Cluster) startControllers(ctx context.Context) error {
	creds := c.creds
	for _, part := range []struct {
		service **Service
		name    string
		program string
		user    user
		args    []string
	}{
		{&c.ControllerManager, "kube-controller-manager", c.binaries.ControllerManager, admin, []string{
			"--service-account-private-key-file", creds.path("service-account.key"),
			"--root-ca-file", creds.path("apiserver.crt"), "--use-service-account-credentials=false",
		}},
		{&c.Scheduler, "kube-scheduler", c.binaries.Scheduler, scheduler, nil},
	} {
		config, err := creds.kubeconfig(part.name, part.user, insideAddress)
		if err != nil {
			return err
		}
		args := append([]string{
			part.program, "--kubeconfig", config, "--bind-address", "127.0.0.1", "--leader-elect=false", "--cert-dir", filepath.Join(c.Dir, part.name),
		}, part.args...)
		*part.service = newService(c.keeper, ServiceSpec{Name: part.name, Args: args})
		if err := (*part.service).Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) etcdSpec() ServiceSpec {
	client, peer := "http://127.0.0.1:"+etcdPort, "http://127.0.0.1:"+etcdPeerPort
	return ServiceSpec{Name: "etcd", Args: []string{
		c.binaries.Etcd, "--data-dir", filepath.Join(c.Dir, "etcd"), "--name", "lab",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "lab=" + peer,
		// Data that a power failure would lose is of no use after one.
		"--unsafe-no-fsync", "--log-level", "warn",
	}}
}

func (c *Cluster) apiServerSpec() ServiceSpec {
	creds := c.creds
	return ServiceSpec{
		Name: "kube-apiserver",
		Args: append([]string{
			c.binaries.APIServer, "--etcd-servers", "http://127.0.0.1:" + etcdPort,
			"--bind-address", "0.0.0.0", "--advertise-address", NodeIP, "--secure-port", apiPort,
			"--tls-cert-file", creds.path("apiserver.crt"), "--tls-private-key-file", creds.path("apiserver.key"),
			"--token-auth-file", creds.path("tokens.csv"), "--authorization-mode", "Node,RBAC",
			"--service-account-issuer", "https://kubernetes.default.svc",
			"--service-account-key-file", creds.path("service-account.key"),
			"--service-account-signing-key-file", creds.path("service-account.key"),
			"--service-cluster-ip-range", "10.96.0.0/24", "--endpoint-reconciler-type", "none",
			"--enable-admission-plugins", "NodeRestriction",
			"--kubelet-preferred-address-types", "InternalIP",
		}, c.binaries.apiServerArgs...),
		Ready: func(ctx context.Context) error {
			return c.client.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		},
	}
}

// httpOK returns nil if url answers 200.
func httpOK(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	reply, err := client.Do(request)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, reply.Status)
	}
	return nil
}
