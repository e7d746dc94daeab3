package compat

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/caddylimit/internal/testcaddy"
)

func zones(text string) string { return `{"rate_limits":{` + text + `}}` }

func start(t testing.TB, config string) *testcaddy.Config {
	t.Helper()
	return testcaddy.Start(t, module, config)
}

func passed(c *testcaddy.Config, n int, remote string, change ...func(*http.Request)) (admitted int) {
	for range n {
		r := testcaddy.From(remote)
		for _, f := range change {
			f(r)
		}
		if c.Do(r).Code == http.StatusOK {
			admitted++
		}
	}
	return admitted
}

func refused(t *testing.T, config string) error {
	t.Helper()
	c, err := testcaddy.Provision(t, module, config)
	if err == nil {
		c.GiveUp()
	}
	require.Error(t, err, config)
	return err
}
