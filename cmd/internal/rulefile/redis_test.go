package rulefile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func parsed(t *testing.T, text string) *File {
	t.Helper()
	f, err := Parse("weir.yaml", []byte(text))
	require.NoError(t, err)
	return f
}

// TestRedisAloneNeedsNoRules: a file with only a listener for Redis clients needs no rules and no HTTP listener. With
// rules, it has an HTTP listener.
func TestRedisAloneNeedsNoRules(t *testing.T) {
	alone := parsed(t, "redis: 127.0.0.1:6380")
	assert.True(t, alone.RedisAlone())
	var out strings.Builder
	require.NoError(t, alone.Describe(&out))
	assert.Equal(t, `redis     127.0.0.1:6380, no password; limits that fill within 624h0m0s; 51 MiB for 1,000,000 keys, then evict

0 rules, about 51 MiB of memory when the tables are full
`, out.String())
	both := parsed(t, "redis: 127.0.0.1:6380\nrules: [{name: a, rate: 1/s}]")
	assert.False(t, both.RedisAlone())
	assert.Equal(t, []Listener{{Address: "127.0.0.1:8080"}}, both.Listen)
}

// TestWhatBecomesOfTheKeysOfRedis: a reload reports what it does with the keys of Redis clients.
func TestWhatBecomesOfTheKeysOfRedis(t *testing.T) {
	before := "redis: {address: 127.0.0.1:6380, max_keys: 100, longest: 1h}"
	for _, c := range []struct {
		after string
		want  Continuity
		lines []string
	}{
		{before, Keep, nil},
		{"redis: {address: unix:/a, max_keys: 100, longest: 1h, idle_timeout: 1m}", Keep,
			[]string{"the listener for clients of Redis changes"}},
		{"redis: {address: 127.0.0.1:6380, max_keys: 101, longest: 1h}", Carry, []string{
			"the listener for clients of Redis changes",
			"redis: it has a new table, because max_keys was 100 and is 101; what keys have used still counts"}},
		{"redis: {address: 127.0.0.1:6380, max_keys: 100, longest: 2h}", Carry, []string{
			"the listener for clients of Redis changes",
			"redis: it has a new table, because longest was 1h0m0s and is 2h0m0s; what keys have used still counts"}},
		{"redis: {address: 127.0.0.1:6380, max_keys: 100, longest: 1h, overflow: refuse}", Carry, []string{
			"the listener for clients of Redis changes",
			"redis: it has a new table, because overflow was evict and is refuse; what keys have used still counts"}},
	} {
		changes := Diff(parsed(t, before), parsed(t, c.after))
		assert.Equal(t, c.want, changes.RedisTable, c.after)
		assert.Equal(t, c.lines, changes.Lines(), c.after)
		assert.Equal(t, c.lines == nil, changes.Empty(), c.after)
	}
	assert.Equal(t, Add, Diff(parsed(t, "rules: [{name: a, rate: 1/s}]"), parsed(t, before)).RedisTable)
}

// TestPasswordsAreTriedWithTheFile: a password file without a password is a mistake with line and column. No message
// repeats a password.
func TestPasswordsAreTriedWithTheFile(t *testing.T) {
	dir := t.TempDir()
	rules := filepath.Join(dir, "weir.yaml")
	require.NoError(t, os.WriteFile(rules, []byte("redis: {address: :6380, password_file: secret}"), 0o600))
	_, err := Load(rules)
	require.ErrorContains(t, err, "weir.yaml:1:40: redis: open "+filepath.Join(dir, "secret")+": no such file")
	for text, want := range map[string]string{
		"\n \n":                       "0 passwords: want 1 to 16, one on each line",
		strings.Repeat("hush\n", 17):  "17 passwords: want 1 to 16, one on each line",
		strings.Repeat("h", 64<<10+1): "more than 65536 bytes: want a password on each line",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "secret"), []byte(text), 0o600))
		_, err = Load(rules)
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "hush")
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("one\r\n two \n"), 0o600))
	f, err := Load(rules)
	require.NoError(t, err)
	all, err := f.Redis.Passwords()
	require.NoError(t, err)
	assert.Len(t, all, 2)

	require.NoError(t, os.WriteFile(rules, []byte("redis: {address: :6380, password_env: WEIR_TEST_PASSWORD}"), 0o600))
	_, err = Load(rules)
	require.ErrorContains(t, err, "weir.yaml:1:39: redis: WEIR_TEST_PASSWORD: 0 passwords: want 1 to 16")
	t.Setenv("WEIR_TEST_PASSWORD", "one")
	_, err = Load(rules)
	require.NoError(t, err)
}

// TestTokensAreTriedWithTheFile does the same as TestPasswordsAreTriedWithTheFile for the token files of the admin
// listener.
func TestTokensAreTriedWithTheFile(t *testing.T) {
	dir := t.TempDir()
	rules := filepath.Join(dir, "weir.yaml")
	const text = "rules: [{name: a, rate: 1/s}]\nadmin: {address: :9090, allow_remote: true, token_file: all, read_token_file: looks}"
	require.NoError(t, os.WriteFile(rules, []byte(text), 0o600))
	_, err := Load(rules)
	require.ErrorContains(t, err, "weir.yaml:2:57: admin: open "+filepath.Join(dir, "all")+": no such file")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "all"), []byte("alice:a-token-of-alice-alone"), 0o600))
	_, err = Load(rules)
	require.ErrorContains(t, err, filepath.Join(dir, "looks")+": no such file")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "looks"), []byte("a-token-of-alice-alone"), 0o600))
	_, err = Load(rules)
	require.ErrorContains(t, err, "looks: token 1: it occurs twice, or in both files")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "looks"), []byte("a-token-of-prometheus"), 0o600))
	f, err := Load(rules)
	require.NoError(t, err)
	access, err := f.Admin.Access()
	require.NoError(t, err)
	assert.NotNil(t, access)
}
