package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestStats: decisions are counted under the given names.
func TestStats(t *testing.T) {
	config, _, err := load(t, `
domain: d
descriptors:
  - key: a
    value_to_metric: true
    descriptors:
      - {key: plain, rate_limit: {unit: second}}
      - {key: detailed, detailed_metric: true, rate_limit: {unit: second}}
      - {key: w, value: x*, value_to_metric: true, rate_limit: {unit: second}}
      - {key: s, value: x*, value_to_metric: true, share_threshold: true, rate_limit: {unit: second}}
      - {key: t, value: x*, detailed_metric: true, share_threshold: true, rate_limit: {unit: second}}
  - {key: k*, rate_limit: {unit: second}}
  - {key: l*, value: v*, rate_limit: {unit: second}}
  - {key: m*, value_to_metric: true, rate_limit: {unit: second}}
  - {key: n*, value_to_metric: true, share_threshold: true, rate_limit: {unit: second}}
  - {key: o*, detailed_metric: true, rate_limit: {unit: second}}
  - key: b
    descriptors:
      - {key: c, value: v, value_to_metric: true, rate_limit: {unit: second}}
      - {key: c, rate_limit: {unit: second}}
`, Options{})
	require.NoError(t, err)
	for asks, want := range map[string]string{
		"a=1,plain=2":    "d.a_1.plain",
		"a=,plain=2":     "d.a.plain",
		"a=1,detailed=2": "d.a_1.detailed_2",
		"a=1,w=xyz":      "d.a_1.w_xyz",
		"a=1,s=xyz":      "d.a_1.s_x*",
		"a=1,t=xyz":      "d.a_1.t_x*",
		"kind=1":         "d.kind_k*",
		"lone=v1":        "d.lone_l*_v*",
		"mine=1":         "d.mine_1",
		"mine=":          "d.mine",
		"none=1":         "d.none_n*",
		"only=1":         "d.only_1",
		"b=1,c=v":        "d.b.c_v",
		"b=1,c=w":        "d.b.c",
	} {
		d := asked(asks)
		assert.Equal(t, want, only(config.Match("d", d)).StatOf(d), asks)
	}
	assert.Equal(t, "d.a_1.b", OverrideStat("d", asked("a=1,b=")))
}

// TestKeys checks which descriptors share a counter.
func TestKeys(t *testing.T) {
	config, _, err := load(t, tree, Options{})
	require.NoError(t, err)
	key := func(domain, asks string) string {
		d := asked(asks)
		return string(AppendKey(nil, only(config.Match(domain, d)), domain, d))
	}
	same := []string{"path=/login,addr=10.1", "path=/login,addr=10.2"}
	assert.Equal(t, key("shop", same[0]), key("shop", same[1]), "share_threshold")

	assert.Equal(t, key("shop", "foobar=1,a=1"), key("shop", "foobar=1,a=2"), "share_threshold of a key")
	assert.NotEqual(t, key("shop", "foobar=1,a=1"), key("shop", "foobar=2,a=1"))
	assert.NotEqual(t, key("shop", "foobar=1,a=1"), key("shop", "foobar=1,b=1"), "the key is not shared, as in the reference")
	assert.NotEqual(t, key("shop", "foobar=1"), key("shop", "foobaz=1"))

	// The key of a shared counter contains its pattern, and a request may have the pattern as its value. This request
	// matches the same rule, so no counter of another rule can have that key.
	different := []string{
		"path=/login,addr=10.1", "path=/login,addr=1", "path=/login,addr=2", "user=a", "user=a,b=", "user=a,b", "a_b=c",
		"a=b_c", "user=", "use=r", "path=/login,addr=10",
	}
	seen := map[string]string{}
	for _, asks := range different {
		k := key("shop", asks)
		if other, ok := seen[k]; ok && strings.TrimSuffix(other, "=") != strings.TrimSuffix(asks, "=") {
			t.Errorf("%q and %q share a counter", other, asks)
		}
		seen[k] = asks
	}
	assert.NotEqual(t, key("shop", "user=a"), key("sho", "user=a"))
}
