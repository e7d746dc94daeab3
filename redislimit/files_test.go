//go:build unix

package redislimit_test

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testlog"
	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/redistest"
)

// An expired certificate is reported as expired, at Open and afterwards.
func TestExpiredCertificatesAreReported(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	authority := issue(t, dir, "authority", nil)
	issue(t, dir, "server", authority)
	good := issue(t, dir, "client", authority)
	old := issueFor(t, dir, "old", authority, time.Now().Add(-time.Minute))
	server, address := redistest.StartTLS(t, file("server.pem"), file("server.key"), file("authority.pem"))
	pool := x509.NewCertPool()
	pool.AddCert(authority.Leaf)

	_, err := redislimit.Open(t.Context(), "rediss://"+address, redislimit.TLS(&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{*old}}))
	require.ErrorIs(t, err, redislimit.ErrStore)
	assert.ErrorContains(t, err, "x509: certificate has expired or is not yet valid: the certificate of this client, CN=old")

	secured := redislimit.TLS(&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{*good}})
	client, err := redislimit.Open(t.Context(), "rediss://"+address, secured, redislimit.Timeout(10*time.Second))
	require.NoError(t, err)
	defer client.Close()
	l := limiter(t, client, slow(), redislimit.OnLoss(redislimit.FailClosed), redislimit.TrustRefusals(0))
	require.True(t, take(t, l, "k", 1).Allowed)
	server.Do("CONFIG", "SET", "tls-cert-file", file("old.pem"), "tls-key-file", file("old.key"))
	server.Do("CLIENT", "KILL", "TYPE", "normal")
	require.Eventually(t, func() bool { _, _ = l.Take(t.Context(), "k", 1); return client.Health().LastErrorKind == "certificate" }, backSoon, time.Millisecond)
	assert.Contains(t, client.Health().LastError, "certificate has expired")
	_, err = redislimit.Open(t.Context(), "rediss://"+address, secured)
	assert.ErrorContains(t, err, "certificate has expired")
}

// Each new connection uses the current files.
func TestFilesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	authority := issue(t, dir, "authority", nil)
	issue(t, dir, "server", authority)
	issue(t, dir, "client", authority)
	server, address := redistest.StartTLS(t, file("server.pem"), file("server.key"), file("authority.pem"))
	password := func(word string) {
		require.NoError(t, os.WriteFile(file("password"), []byte(word+"\n"), 0o600))
		server.Do("ACL", "SETUSER", "weir", "reset", "on", ">"+word, "~*", "+@all")
	}
	password("first")
	log := &testlog.Log{}
	client, err := redislimit.Open(t.Context(), "rediss://weir@"+address, redislimit.Timeout(10*time.Second), redislimit.FromFiles(redislimit.Files{
		CA: file("authority.pem"), Certificate: file("client.pem"), CertificateKey: file("client.key"), Password: file("password"),
	}), redislimit.Logger(slog.New(slog.NewTextHandler(log, nil))))
	require.NoError(t, err)
	defer client.Close()
	l := limiter(t, client, slow(), redislimit.OnLoss(redislimit.FailClosed), redislimit.TrustRefusals(0))
	reconnects := func(what string) {
		server.Do("CLIENT", "KILL", "TYPE", "normal")
		require.Eventually(t, func() bool { _, err := l.Take(t.Context(), "k", 1); return err == nil }, backSoon, time.Millisecond, what)
	}
	require.True(t, take(t, l, "k", 1).Allowed)
	password("second")
	reconnects("another password")

	fresh := issue(t, dir, "authority", nil)
	issue(t, dir, "server", fresh)
	issue(t, dir, "client", fresh)
	server.Do("CONFIG", "SET", "tls-cert-file", file("server.pem"), "tls-key-file", file("server.key"), "tls-ca-cert-file", file("authority.pem"))
	reconnects("another authority")

	require.NoError(t, os.WriteFile(file("client.pem"), []byte("-----BEGIN"), 0o600))
	reconnects("a file that is half written")
	require.NotEmpty(t, log.With("is bad"))
	assert.Contains(t, log.With("is bad")[0], "client.pem")
	assert.NotContains(t, log.String(), "second")
}

func TestFilesThatDoNotFit(t *testing.T) {
	name := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(name, nil, 0o600))
	for want, test := range map[string]struct {
		address string
		files   redislimit.Files
	}{
		"want both or none":                         {"rediss://localhost", redislimit.Files{Certificate: name}},
		"the address does not begin with rediss://": {"redis://localhost", redislimit.Files{CA: name}},
		"no certificate in PEM":                     {"rediss://localhost", redislimit.Files{CA: name}},
		"no such file":                              {"redis://localhost", redislimit.Files{Password: name + "none"}},
		"no password in it":                         {"redis://localhost", redislimit.Files{Password: name}},
		"leave one of the two out":                  {"redis://:secret@localhost", redislimit.Files{Password: name}},
	} {
		_, err := redislimit.Open(t.Context(), test.address, redislimit.FromFiles(test.files))
		if assert.ErrorContains(t, err, want) {
			assert.NotContains(t, err.Error(), "secret")
			assert.NotErrorIs(t, err, redislimit.ErrStore)
		}
	}
}

// With Sentinel, the password file is for the servers. The sentinels would refuse that password.
func TestAPasswordFileWithSentinel(t *testing.T) {
	t.Parallel()
	master, replica, sentinels := sentinelSet(t)
	name := filepath.Join(t.TempDir(), "password")
	password := func(word string) {
		require.NoError(t, os.WriteFile(name, []byte(word+"\n"), 0o600))
		for _, server := range []*redistest.Server{master, replica} {
			server.Do("ACL", "SETUSER", "weir", "reset", "on", ">"+word, "~*", "+@all")
		}
	}
	password("first")
	url := strings.Replace(sentinels.URL(), "redis://", "redis://weir@", 1)
	store := open(t, url, redislimit.FromFiles(redislimit.Files{Password: name}))
	l := limiter(t, store, slow(), redislimit.OnLoss(redislimit.FailClosed), redislimit.TrustRefusals(0))
	answers := func() bool { _, err := l.Take(t.Context(), "k", 1); return err == nil }
	require.Eventually(t, answers, backSoon, time.Millisecond)
	password("second")
	master.Do("CLIENT", "KILL", "TYPE", "normal")
	require.Eventually(t, answers, backSoon, time.Millisecond, "another password")
	sentinels.Failover()
	sentinels.AwaitMaster(replica)
	master.Stop()
	require.Eventually(t, answers, backSoon, time.Millisecond, "another master")
	for _, sentinel := range sentinels.Nodes {
		require.Empty(t, sentinel.Do("ACL", "LOG"), "a sentinel was sent a password")
	}
	_, err := redislimit.Open(t.Context(), strings.Replace(sentinels.URL(), "redis://", "redis://weir@", 1),
		redislimit.FromFiles(redislimit.Files{Password: name}), redislimit.SentinelUser("weir", "none"))
	require.ErrorContains(t, err, "WRONGPASS", "the sentinels' own")
}
