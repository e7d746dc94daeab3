package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/freeport"
)

// A securedStore is a Redis server. A client needs a signed certificate to use it.
type securedStore struct {
	t         *testing.T
	port      string
	folder    string
	authority *x509.Certificate
	key       *ecdsa.PrivateKey
	server    *exec.Cmd
}

func (s *securedStore) file(name string) string { return filepath.Join(s.folder, name) }

// issue writes a certificate for 127.0.0.1 and its private key. The certificate is valid until end.
func (s *securedStore) issue(name string, end time.Time) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(s.t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: end, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	parent, signer := s.authority, s.key
	if name == "authority" {
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	require.NoError(s.t, err)
	if name == "authority" {
		s.key = key
		s.authority, err = x509.ParseCertificate(der)
		require.NoError(s.t, err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(s.t, err)
	for ending, block := range map[string]*pem.Block{".pem": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		require.NoError(s.t, os.WriteFile(s.file(name+ending), pem.EncodeToMemory(block), 0o600))
	}
}

// replace makes a new authority, and new certificates for the store and its clients.
func (s *securedStore) replace() {
	for _, name := range []string{"authority", "server", "client"} {
		s.issue(name, time.Now().Add(time.Hour))
	}
}

func (s *securedStore) start() {
	s.server = exec.Command("redis-server", "--port", "0", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
		"--dir", s.t.TempDir(), "--tls-port", s.port, "--tls-auth-clients", "yes", "--tls-cert-file", s.file("server.pem"),
		"--tls-key-file", s.file("server.key"), "--tls-ca-cert-file", s.file("authority.pem"))
	require.NoError(s.t, s.server.Start())
	require.Eventually(s.t, func() bool {
		conn, err := net.Dial("tcp", "127.0.0.1:"+s.port)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}, time.Minute, 10*time.Millisecond)
}

func (s *securedStore) stop() {
	_ = s.server.Process.Kill()
	_ = s.server.Wait()
}

// TestCertificatesOfAStoreAreReplaced: the store and its clients change to another authority. A running weir uses the
// new files, with a reload and without one. If the certificate of either side has expired, the log or the error at the
// start says so.
func TestCertificatesOfAStoreAreReplaced(t *testing.T) {
	installed(t, "redis-server")
	port := strconv.Itoa(freeport.Number(t))
	store := &securedStore{t: t, port: port, folder: t.TempDir()}
	store.replace()
	store.start()
	t.Cleanup(store.stop)
	rules := file(t, "weir.yaml", fmt.Sprintf(`listen: 127.0.0.1:0
store:
  url: rediss://127.0.0.1:%s
  ca: %s
  certificate: %s
  certificate_key: %s
  timeout: 5s
rules: [{name: api, key: global, rate: 40/h, burst: 40}]
`, port, store.file("authority.pem"), store.file("client.pem"), store.file("client.key")))
	weir := startProgram(t, "serve", rules)
	url := weir.until(`msg=listening url=(\S+) for=clients`)[0]
	require.Equal(t, 200, status(t, url))
	ctx, cancel := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	asking.Go(func() { // without requests, weir does not notice that the store is lost
		for ctx.Err() == nil {
			assert.Contains(t, []int{200, 429}, status(t, url))
			time.Sleep(20 * time.Millisecond) // leaves the processor to the other process
		}
	})

	for _, reloads := range []bool{false, true} {
		store.stop()
		weir.until(`msg="the store is lost" kind=connection`)
		store.replace()
		if reloads {
			require.NoError(t, weir.Process.Signal(syscall.SIGHUP))
			weir.until("msg=reloaded")
		}
		store.start()
		weir.until(`msg="the store is back"`)
	}

	for side, error := range map[string]string{"client": ".*CN=client", "server": ""} {
		store.stop()
		weir.until(`msg="the store is lost" kind=connection`)
		store.issue(side, time.Now().Add(-time.Minute))
		store.start()
		weir.until(`msg="the store is still lost" kind=certificate error=".*certificate has expired` + error)
		store.stop()
		store.replace()
		store.start()
		weir.until(`msg="the store is back"`)
	}
	cancel()
	asking.Wait()
	require.NoError(t, weir.Process.Signal(syscall.SIGTERM))
	weir.until("msg=stopped")
	assert.NoError(t, weir.Wait())

	store.stop()
	store.issue("server", time.Now().Add(-time.Minute))
	store.start()
	got := run(t, build(t), "", "serve", rules)
	assert.Equal(t, 1, got.status)
	assert.Contains(t, got.stderr, "certificate has expired")
}
