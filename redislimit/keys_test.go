package redislimit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
)

func names(t *testing.T, limit, key string, options ...redislimit.ClientOption) []string {
	server, client := mini(t, options...)
	require.True(t, take(t, limiterOf(t, client, limit), key, 1).Allowed)
	return miniKeys(server)
}

func limiterOf(t *testing.T, client *redislimit.Client, name string) *redislimit.Limiter {
	l, err := redislimit.New(client, name, engine.TokenBucket(engine.Per(5, time.Minute), 5))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.Close()) })
	return l
}

// The store never contains a client's key in clear text, however long it is.
func TestKeysAreHashed(t *testing.T) {
	const token = "Bearer eyJhbGciOiJIUzI1NiJ9"
	for _, key := range []string{token, strings.Repeat(token, 1000), "", "{}:\n"} {
		all := names(t, "api", key)
		require.Len(t, all, 1)
		assert.Regexp(t, `^weir:\{p[0-9]{4}\}:bucket:api:#[A-Za-z0-9_-]{22}$`, all[0])
		assert.Equal(t, all, names(t, "api", key), "other nodes find it")
		assert.NotEqual(t, all, names(t, "api", key, redislimit.Secret("sixteen characters")))
	}
	assert.Equal(t, names(t, "api", token, redislimit.Secret("sixteen characters")), names(t, "api", token, redislimit.Secret("sixteen characters")))
	assert.Regexp(t, ":api:=192.0.2.1$", names(t, "api", "192.0.2.1", redislimit.FullKeys())[0])
	assert.Regexp(t, ":api:#.{22}$", names(t, "api", strings.Repeat("x", 257), redislimit.FullKeys())[0], "a long one in any case")
	_, err := redislimit.Open(t.Context(), "redis://127.0.0.1:1", redislimit.Secret("short"))
	assert.ErrorContains(t, err, "Secret: 5 characters")
}

// A colon in a limit's name or in a key does not give two keys the same name.
func TestNamesAndKeysAreNotMixedUp(t *testing.T) {
	for _, options := range [][]redislimit.ClientOption{nil, {redislimit.FullKeys()}} {
		_, client := mini(t, options...)
		for _, one := range [][2]string{{"api", "v1:bob"}, {"api:v1", "bob"}, {"api", "=v1:bob"}, {"api%3Av1", "bob"}, {"api:v1:", "bob"}} {
			l := limiterOf(t, client, one[0])
			assert.EqualValues(t, 5, peek(t, l, one[1], 1).Remaining, "%q", one)
			require.True(t, take(t, l, one[1], 5).Allowed)
		}
	}
}

// An error about an address does not repeat any part of a password.
func TestPasswordsAreNotRepeated(t *testing.T) {
	for _, address := range []string{
		"redis://user:se/cret@localhost:6379", "redis://user:se#cret@localhost:6379", "redis://user:secr%et@localhost",
		"redis://:12/secret@localhost", "redis//secret@localhost", "http://user:secret@localhost", "redis://user:se cret@localhost:6379x",
		"redis://u:secret@127.0.0.1:1",
	} {
		_, err := redislimit.Open(t.Context(), address)
		require.Error(t, err, address)
		for _, part := range []string{"secret", "cret", "se/", "secr"} {
			assert.NotContains(t, err.Error(), part, address)
		}
	}
}

func peek(t *testing.T, l *redislimit.Limiter, key string, n uint64) engine.Decision {
	t.Helper()
	d, err := l.Peek(t.Context(), key, n)
	require.NoError(t, err)
	return d
}
