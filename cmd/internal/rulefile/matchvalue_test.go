package rulefile

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMatchByTheValueOfAField: rules ignore blanks around a value, because a client can send them over HTTP/2 and the
// upstream does not see them. Rules also ignore case, as many servers do.
func TestMatchByTheValueOfAField(t *testing.T) {
	const match = `{header: {X-Env: " prod", Authorization: "bearer T"}, query: {format: csv}`
	parse := func(text string) *File {
		f, err := Parse("weir.yaml", []byte(text))
		require.NoError(t, err)
		return f
	}
	folded := parse("rules: [{name: a, rate: 1/s, match: " + match + "}}]")
	kept := parse("rules: [{name: a, rate: 1/s, match: " + match + ", case: sensitive}}]")
	exempt := parse("exempt: " + match + "}\nrules: [{name: a, rate: 1/s}]")
	for _, c := range []struct {
		env, credentials, format string
		folded, kept             bool
	}{
		{"prod", "Bearer T", "csv", true, true},
		{" prod", "Bearer T", "csv", true, true},
		{"prod\t", "bearer  T ", "csv", true, true},
		{"prod", "BEARER\tT", "csv", true, true},
		{"Prod", "Bearer T", "csv", true, false},
		{"prod", "Bearer t", "csv", true, false},
		{"prod", "Bearer T", "CSV", true, false},
		{"prod2", "Bearer T", "csv", false, false},
		{"pro d", "Bearer T", "csv", false, false},
		{"prod", "Bearer", "csv", false, false},
	} {
		ask := func(f *File) (meets, exempt bool) {
			return meant(t, f, "GET", "/?format="+c.format, "192.0.2.1", "X-Env", c.env, "Authorization", c.credentials)
		}
		got, _ := ask(folded)
		assert.Equal(t, c.folded, got, "%+v", c)
		got, _ = ask(kept)
		assert.Equal(t, c.kept, got, "%+v, case: sensitive", c)
		_, got = ask(exempt)
		assert.Equal(t, c.kept, got, "%+v: an exception is certain", c)
	}
}

// TestMatchByAMethodInTheQuery: for some frameworks, a parameter in the query of a POST replaces the method.
func TestMatchByAMethodInTheQuery(t *testing.T) {
	f, err := Parse("weir.yaml", []byte("exempt: {method: POST, header: {X-Probe: a}}\n"+
		"rules: [{name: a, rate: 1/s, match: {method: DELETE}}]"))
	require.NoError(t, err)
	for request, want := range map[[2]string]bool{
		{"DELETE", "/"}: true, {"POST", "/?_method=DELETE"}: true, {"post", "/?x&_METHOD=delete"}: true,
		{"POST", "/?%5fmethod=%44ELETE"}: true, {"POST", "/?_method=PUT&_method=DELETE"}: true, {"POST", "/"}: false,
		{"POST", "/?_method=PUT"}: false, {"GET", "/?_method=DELETE"}: false, {"POST", "/?method=DELETE"}: false,
	} {
		meets, _ := meant(t, f, request[0], request[1], "192.0.2.1")
		assert.Equal(t, want, meets, request)
	}
	_, exempt := meant(t, f, http.MethodPost, "/?x", "192.0.2.1", "X-Probe", "a")
	assert.True(t, exempt)
	_, exempt = meant(t, f, http.MethodPost, "/?_method=DELETE", "192.0.2.1", "X-Probe", "a")
	assert.False(t, exempt, "it may be a DELETE")
}
