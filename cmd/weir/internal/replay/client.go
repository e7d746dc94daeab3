package replay

import (
	"net/netip"

	"github.com/weir-go/weir/cmd/weir/internal/config"
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

// clients finds the client of a log line. An address is one client however it is
// written (IPv4-mapped IPv6 is IPv4), and so are the IPv6 addresses of a network, as for
// weir serve. So there are two steps: by the text, which needs neither parsing nor an
// allocation once seen, then by the name.
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
	name := clientName(text, 32, config.IPv6Prefix)
	c, ok := cs.byName[name]
	if !ok {
		c = &client{name: name, charges: make([]charge, len(lanes))}
		for i, l := range lanes {
			c.charges[i].key = l.limiter.Key(name)
		}
		cs.byName[name] = c
	}
	cs.byText[text] = c
	return c
}

// clientName returns what a client is called and counted by: its address, cut to the bits that count. A
// host that is not an address, as servers with name look-ups write, is the text that it is.
func clientName(host string, bits4, bits6 int) string {
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	addr = addr.Unmap().WithZone("")
	bits := bits6
	if addr.Is4() {
		bits = bits4
	}
	if bits == addr.BitLen() {
		return addr.String()
	}
	return netip.PrefixFrom(addr, bits).Masked().String()
}
