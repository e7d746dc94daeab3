package fuzz

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/limits"
)

// TestJoinedKeysAreTheSameWhenTheirPartsAre: joined keys are equal if and only if their parts are.
func TestJoinedKeysAreTheSameWhenTheirPartsAre(t *testing.T) {
	l, err := engine.New(engine.TokenBucket(engine.PerSecond(1), 5), engine.MaxKeys(100))
	require.NoError(t, err)
	defer l.Close()
	a, err := httplimit.Header("A", httplimit.RemoteIP)
	require.NoError(t, err)
	b, err := httplimit.Header("B", nil)
	require.NoError(t, err)
	join := httplimit.Join(a, b)
	request := func(a, b string) *http.Request {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Add("A", a)
		r.Header.Add("B", b)
		return r
	}
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringOfN(rapid.RuneFrom([]rune("ab:1")), 1, 6, -1)
		r := request(value.Draw(t, "a1"), value.Draw(t, "b1"))
		s := request(value.Draw(t, "a2"), value.Draw(t, "b2"))
		same := r.Header.Get("A") == s.Header.Get("A") && r.Header.Get("B") == s.Header.Get("B")
		k1, _ := join(limits.HasherOf(l), r)
		k2, _ := join(limits.HasherOf(l), s)
		if (k1 == k2) != same {
			t.Fatalf("%v and %v: same key: %v", r.Header, s.Header, k1 == k2)
		}
	})
}
