package replay

import (
	"net/netip"

	"github.com/weir-go/weir/engine"
)

// client is one key of the log and what became of its requests.
type client struct {
	name     string
	requests uint64
	charges  []charge // one for each lane
}

// charge is what one limiter did to a client.
type charge struct {
	key     engine.Key
	refused uint64
	through span
}

// clients finds the client of a log line. An address is one client however it
// is written (IPv4-mapped IPv6 is IPv4), so there are two steps: by the text,
// which needs neither parsing nor an allocation once seen, then by the name.
// It grows with the number of different clients: the report names them all.
type clients struct {
	byText map[string]*client
	byName map[string]*client
}

func newClients() *clients {
	return &clients{byText: map[string]*client{}, byName: map[string]*client{}}
}

// of returns the client that the host field of a line stands for.
func (cs *clients) of(host []byte, lanes []*lane) *client {
	if c, ok := cs.byText[string(host)]; ok {
		return c
	}
	text := string(host)
	name, key := identify(text)
	c, ok := cs.byName[name]
	if !ok {
		c = &client{name: name, charges: make([]charge, len(lanes))}
		for i, l := range lanes {
			c.charges[i].key = key(l.limiter)
		}
		cs.byName[name] = c
	}
	cs.byText[text] = c
	return c
}

// identify gives the name to show and the engine's key. A host that is not an
// address, as servers with name look-ups write, is keyed as the text it is.
func identify(host string) (name string, key func(*engine.Limiter) engine.Key) {
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return host, func(l *engine.Limiter) engine.Key { return l.Key(host) }
	}
	addr = addr.Unmap().WithZone("") // as the engine's key has it
	return addr.String(), func(l *engine.Limiter) engine.Key { return l.KeyAddr(addr) }
}
