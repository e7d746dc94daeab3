//go:build unix

package redistest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// A Proxy is a network between a client and a server: a loopback port that forwards everything except during a fault.
// Each fault replaces the previous one.
type Proxy struct {
	t     testing.TB
	proxy *toxiproxy.Proxy
}

// StartProxy starts a proxy to the address upstream, until the test ends.
func StartProxy(t testing.TB, upstream string) *Proxy {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := &Proxy{t: t, proxy: toxiproxy.NewProxy(server, t.Name(), "127.0.0.1:0", upstream)}
	if err := p.proxy.Start(); err != nil {
		t.Fatalf("proxy before %s: %v", upstream, err)
	}
	t.Cleanup(p.proxy.Stop)
	return p
}

// Addr returns the proxy's address, such as 127.0.0.1:40123.
func (p *Proxy) Addr() string { return p.proxy.Listen }

// URL returns the proxy's address as a URL.
func (p *Proxy) URL() string { return "redis://" + p.Addr() }

// Latency delays every answer by d, in whole milliseconds.
func (p *Proxy) Latency(d time.Duration) {
	p.t.Helper()
	p.Clear()
	p.add("latency", "downstream", fmt.Sprintf(`{"latency": %d}`, d.Milliseconds()))
}

// BlackHole swallows everything in both directions, and accepts new connections.
func (p *Proxy) BlackHole() {
	p.t.Helper()
	p.Clear()
	p.add("timeout", "upstream", `{"timeout": 0}`)
	p.add("timeout", "downstream", `{"timeout": 0}`)
}

// LoseAnswers lets requests arrive and swallows the answers.
func (p *Proxy) LoseAnswers() {
	p.t.Helper()
	p.Clear()
	p.add("timeout", "downstream", `{"timeout": 0}`)
}

// Reset cuts every connection when the first answer arrives on it.
func (p *Proxy) Reset() {
	p.t.Helper()
	p.Clear()
	p.add("reset_peer", "downstream", `{"timeout": 0}`)
}

// Clear ends the fault. It closes connections that lost data, because they cannot continue.
func (p *Proxy) Clear() {
	p.proxy.Toxics.ResetToxics(context.Background())
}

func (p *Proxy) add(kind, stream, attributes string) {
	p.t.Helper()
	toxic := fmt.Sprintf(`{"type": %q, "stream": %q, "toxicity": 1, "attributes": %s}`, kind, stream, attributes)
	if _, err := p.proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
		p.t.Fatalf("%s: %v", toxic, err)
	}
}
