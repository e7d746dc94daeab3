package rulefile

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/redislimit"
)

func write(t *testing.T, name string, text []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(name, text, 0o600))
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "weir.yaml")
	_, err := Load(name)
	require.EqualError(t, err, "there is no file "+name+": give the path of a rule file")
	_, err = Load(dir)
	require.EqualError(t, err, dir+" is a directory: name one rule file")
	write(t, name, []byte("rules: [{name: a, rate: 1/s}]\n"))
	f, err := Load(name)
	require.NoError(t, err)
	assert.Equal(t, name, f.Name)
	assert.Equal(t, []Listener{{Address: "127.0.0.1:8080"}}, f.Listen)
	assert.True(t, f.Echo())
	write(t, name, make([]byte, MaxBytes+2))
	_, err = Load(name)
	require.EqualError(t, err, name+": the file is longer than 1048576 bytes, the maximum")
}

func TestCertificatesAreReadFromBesideTheFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "weir.yaml")
	write(t, name, []byte("listen: {address: ':8443', tls: {cert: c.pem, key: k.pem}}\n"+
		"rules: [{name: a, rate: 1/s, brst: 5}]\n"))
	_, err := Load(name)
	require.ErrorContains(t, err, name+":1:33: tls: open "+filepath.Join(dir, "c.pem")+":")
	assert.Len(t, err, 2, "with the other mistakes")

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0),
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	write(t, filepath.Join(dir, "c.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}))
	write(t, filepath.Join(dir, "k.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	write(t, name, []byte("listen: {address: ':8443', tls: {cert: c.pem, key: k.pem}}\n"+
		"rules: [{name: a, rate: 1/s}]\n"))
	f, err := Load(name)
	require.NoError(t, err)
	assert.Equal(t, &TLS{filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")}, f.Listen[0].TLS)
}

// TestWhatAStoreSays: the limiter of a rule in a store has the numbers of the section store.
func TestWhatAStoreSays(t *testing.T) {
	f, err := Parse("weir.yaml", []byte(`
store: {url: redis://a, share: 5%, mode: strict, partitions: 8, keys: hashed, secret: a secret of 24 characters}
rules: [{name: a, rate: 1000/s, burst: 200}]
`))
	require.NoError(t, err)
	want := Store{
		URL: "redis://a", Prefix: "weir", Timeout: 50 * time.Millisecond, Nodes: 4,
		Share: 5, Mode: redislimit.Strict, Partitions: 8, Secret: "a secret of 24 characters",
	}
	assert.Equal(t, want, *f.Store)
	other := want
	other.Secret = "another one of so many"
	assert.False(t, want.Same(&other), "other names of keys")
	other = want
	other.Share, other.Mode = 10, redislimit.Auto
	assert.True(t, want.Same(&other))
	f, err = Parse("weir.yaml", []byte("store: {url: redis://a, keys: full}\nrules: [{name: a, rate: 1/s}]\n"))
	require.NoError(t, err)
	assert.True(t, f.Store.FullKeys)
}
