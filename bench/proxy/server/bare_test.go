package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == BareCommand {
		if err := ServeBare(os.Args[2]); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

func TestBareProxyPassesRequestsOn(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.URL.Path)
	}))
	defer upstream.Close()
	self, err := os.Executable()
	require.NoError(t, err)
	p, err := Bare(self).Start(t.Context(), Without, strings.TrimPrefix(upstream.URL, "http://"), "")
	require.NoError(t, err)
	resp, err := http.Get("http://" + p.Address + "/a")
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Equal(t, "/a", string(body))
	_, err = p.Stop()
	assert.NoError(t, err)
	assert.ErrorContains(t, ServeBare(t.TempDir()+"/none"), "no such file")
}
