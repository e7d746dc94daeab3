package metrics

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/envoy"
)

// TestWhatStatsdIsSent: for a counter, statsd gets the increase. For a gauge, it gets the value, even if that has
// fallen. A duration has the sampling rate, which is the share of calls in the sample.
func TestWhatStatsdIsSent(t *testing.T) {
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	s := &Statsd{Network: "udp", Address: l.LocalAddr().String(), Tags: map[string]string{"zone": "a"}}
	sent := func(times []Timing, counters ...envoy.Counter) string {
		require.NoError(t, s.flush(counters, times))
		require.NoError(t, l.SetReadDeadline(time.Now().Add(time.Minute)))
		buffer := make([]byte, 2*maxPacket)
		n, _, err := l.ReadFrom(buffer)
		require.NoError(t, err)
		return strings.ReplaceAll(string(buffer[:n]), ".__zone=a", "")
	}
	assert.Equal(t, "a:3|c\nb:5|g\nc:0|g\n", sent(nil, envoy.Counter{Name: "a", Value: 3}, envoy.Counter{Name: "b", Value: 5, Gauge: true},
		envoy.Counter{Name: "c", Gauge: true}))
	assert.Equal(t, "a:1|c\nb:2|g\nt:0.125|ms|@0.5\nt:7.000|ms|@0.5\n", sent([]Timing{{"t", []float64{0.125, 7}, 0.5}},
		envoy.Counter{Name: "a", Value: 4}, envoy.Counter{Name: "b", Value: 2, Gauge: true}, envoy.Counter{Name: "c", Gauge: true}))
	assert.Equal(t, "t:1.000|ms\n", sent([]Timing{{"t", []float64{1}, 1}}, envoy.Counter{Name: "a", Value: 4}))
}

// TestASampleIsOfAll: a sample has at most maxSample values. Early and late values are in it with the same probability.
func TestASampleIsOfAll(t *testing.T) {
	s := &sample{}
	for i := range 100 * maxSample {
		s.add(float64(i))
	}
	values, of := s.take()
	assert.EqualValues(t, 100*maxSample, of)
	assert.Len(t, values, maxSample)
	early := 0
	for _, v := range values {
		if v < 50*maxSample {
			early++
		}
	}
	assert.InDelta(t, maxSample/2, early, maxSample/5) // nine standard deviations
	values, of = s.take()
	assert.Empty(t, values)
	assert.Zero(t, of)
}
