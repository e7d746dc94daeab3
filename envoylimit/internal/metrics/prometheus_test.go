package metrics

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/envoylimit"
	"github.com/weir-go/weir/envoylimit/config"
)

// TestEveryTableHasANameOfItsOwn: two of one name would be an error of the whole scrape.
func TestEveryTableHasANameOfItsOwn(t *testing.T) {
	document, err := config.Parse("a.yaml", []byte(`
domain: d
descriptors:
  - {key: a, rate_limit: {unit: second, requests_per_unit: 1}}
  - {key: b, rate_limit: {unit: second, requests_per_unit: 2}}
  - {key: c, rate_limit: {unit: second, requests_per_unit: 2, algorithm: token-bucket}}
  - {key: d, rate_limit: {unit: second, requests_per_unit: 3, algorithm: token-bucket}}
  - {key: e, rate_limit: {unit: second, requests_per_unit: 3, algorithm: token-bucket, burst: 9}}
  - {key: f, rate_limit: {unit: second, requests_per_unit: 3, algorithm: sliding-log}}
  - {key: g, rate_limit: {unit: second, requests_per_unit: 4, algorithm: sliding-log}}
`))
	require.NoError(t, err)
	compiled, err := config.Compile([]*config.Document{document}, config.Options{})
	require.NoError(t, err)
	service, err := envoylimit.New(envoylimit.Options{MaxKeys: 10})
	require.NoError(t, err)
	defer service.Close()
	require.NoError(t, service.SetConfig(compiled))
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(Collector(service))
	n, err := testutil.GatherAndCount(registry, "weir_envoy_table_no_room_total")
	require.NoError(t, err)
	assert.Equal(t, 6, n)
}
