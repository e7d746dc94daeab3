package secretfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLines(t *testing.T) {
	all, err := Lines(" one \r\n\n\ttwo\nthree", "token")
	require.NoError(t, err)
	assert.Equal(t, []string{"one", "two", "three"}, all)
	_, err = Lines("\n \n", "token")
	assert.EqualError(t, err, "0 tokens: want 1 to 16, one on each line")
	_, err = Lines(strings.Repeat("hush\n", 17), "token")
	assert.EqualError(t, err, "17 tokens: want 1 to 16, one on each line")
}

func TestFind(t *testing.T) {
	all := []Hash{HashOf([]byte("a")), HashOf([]byte("b"))}
	for secret, want := range map[string]int{"a": 0, "b": 1, "": -1, "ab": -1} {
		assert.Equal(t, want, Find(all, []byte(secret)), secret)
	}
	assert.Equal(t, -1, Find(nil, []byte("a")))
}

func TestALongFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(name, []byte(strings.Repeat("x", MaxBytes+1)), 0o600))
	_, err := Read(name, "token")
	assert.EqualError(t, err, name+": more than 65536 bytes: want a token on each line")
	_, err = Read(name+"-none", "token")
	assert.ErrorIs(t, err, os.ErrNotExist)
}
