package actions

import (
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// The first three constants bound how many requests are noted. The last three are the numbers from which a ban causes a
// warning.
const (
	samplesPerSecond = 16               // the number of requests that are noted in each second, from its start
	sampleAge        = 10 * time.Minute // how long they are remembered
	maxSamples       = samplesPerSecond * int(sampleAge/time.Second)
	manyClients      = 5 // clients in a network
	manyUsers        = 5 // users with one client's address
	manyAgents       = 10
)

// Seen notes the senders of the first requests of each second, to find out whether a ban would affect many clients. It
// remembers at most 9,600 requests, for 10 minutes. They need 0.8 MB, and are never written to a file.
type Seen struct {
	remaining atomic.Int64 // how many more requests are noted in this second

	mu   sync.Mutex
	ring []sample
	next int
}

// A sample is one request. Its client, user and program are stored as hashes.
type sample struct {
	at          int64 // seconds since 1970
	client      KeyID
	addr        netip.Addr // the zero Addr if addresses are not kept
	user, agent KeyID      // zero for none
}

// Wants reports whether a request should be noted. If not, the call costs one atomic load.
func (s *Seen) Wants() bool { return s.remaining.Load() > 0 && s.remaining.Add(-1) >= 0 }

// refill permits the requests of the next second to be noted.
func (s *Seen) refill() { s.remaining.Store(samplesPerSecond) }

// A Sender describes who has sent a request. User and Agent are claims of the client.
type Sender struct {
	Client netip.Prefix // the network that rules count as one client
	Addr   netip.Addr   // the zero Addr if addresses are not kept
	User   string       // such as an API key; "" for none
	Agent  string       // the program; "" for none
}

// Note remembers the sender of a request for which Seen.Wants was true.
func (t *Table) Note(sender Sender) {
	if !sender.Client.IsValid() {
		return
	}
	id := func(text string) (id KeyID) {
		if text != "" {
			id = t.KeyID(text)
		}
		return id
	}
	n := sample{t.config.Now().Unix(), t.KeyID(ipText(sender.Client.Addr())), sender.Addr, id(sender.User), id(sender.Agent)}
	s := &t.Seen
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ring) < maxSamples {
		if s.ring == nil {
			s.ring = make([]sample, 0, maxSamples)
		}
		s.ring = append(s.ring, n)
		return
	}
	s.ring[s.next] = n
	s.next = (s.next + 1) % maxSamples
}

func ipText(addr netip.Addr) string { return "ip:" + addr.String() }

// A Sighting says how many requests were noted for a target within the last ten minutes, and how many clients, users
// and programs sent them.
type Sighting struct {
	Known    bool `json:"known"` // false: requests for such targets are not noted, so the numbers are 0
	Requests int  `json:"requests"`
	Clients  int  `json:"clients"`
	Users    int  `json:"users"`
	Agents   int  `json:"agents"`
}

func (t *Table) sighting(match func(*sample) bool) Sighting {
	since := t.config.Now().Add(-sampleAge).Unix()
	clients, users, agents, n := map[KeyID]bool{}, map[KeyID]bool{}, map[KeyID]bool{}, 0
	t.Seen.mu.Lock()
	defer t.Seen.mu.Unlock()
	for i := range t.Seen.ring {
		s := &t.Seen.ring[i]
		if s.at < since || !match(s) {
			continue
		}
		n++
		clients[s.client] = true
		if s.user != (KeyID{}) {
			users[s.user] = true
		}
		if s.agent != (KeyID{}) {
			agents[s.agent] = true
		}
	}
	return Sighting{true, n, len(clients), len(users), len(agents)}
}

// Preview returns how many senders were noted for the target of an action. For a ban that affects many of them, it also
// returns warnings. The function client returns the network around an address that rules count as one client. The
// parameter addresses says whether addresses are stored.
func (t *Table) Preview(a *Action, client func(netip.Addr) netip.Prefix, addresses bool) (sighting Sighting, warnings []string) {
	warn := func(format string, args ...any) {
		if a.Kind == Ban {
			warnings = append(warnings, fmt.Sprintf(format, args...))
		}
	}
	switch p := a.Network; {
	case a.IsKey():
		sighting = t.sighting(func(s *sample) bool { return s.client == a.Key })
		// No request is noted for a key that is not an address.
		sighting.Known = sighting.Requests > 0
	case !p.IsValid():
		warn("every request that the rule %s applies to is refused", a.Rule)
		return sighting, warnings
	default:
		network := client(p.Addr())
		switch {
		case p.Bits() >= network.Bits():
			id := t.KeyID(ipText(network.Addr()))
			sighting = t.sighting(func(s *sample) bool { return s.client == id })
			if p.Bits() > network.Bits() {
				warn("one client has all of %v, and can continue from another address there", network)
			}
		case addresses:
			sighting = t.sighting(func(s *sample) bool { return p.Contains(s.addr) })
			if sighting.Clients >= manyClients {
				warn("%d different clients were seen in it within the last 10 minutes", sighting.Clients)
			}
			return sighting, warnings
		default:
			warn("the number of its clients is not known, because addresses are only kept with keys: full")
			return sighting, warnings
		}
	}
	if sighting.Users >= manyUsers || sighting.Agents >= manyAgents {
		warn("many share the address: %d different users and %d different programs (User-Agent) in %d requests of the last 10 minutes",
			sighting.Users, sighting.Agents, sighting.Requests)
	}
	return sighting, warnings
}
