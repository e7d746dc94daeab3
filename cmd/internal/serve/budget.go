package serve

import (
	"log/slog"

	"github.com/weir-go/weir/cmd/internal/rulefile"
)

// A budget divides the files that the process may have open. Each connection to a client or an upstream is a file.
//
//   - reserve is for everything else: listeners, the rule file, the connections to the store, and the administrator's
//     connections, which get half of it. So the administrator can look at a full server, and no one can fill the server
//     through that listener.
//   - Clients get half of the rest, unless the rule file sets max_connections. Proxies that ask for decisions and Redis
//     clients would each get the same number; if several of the three have listeners, they divide it.
//   - Upstreams get what remains. Over HTTP/2 one client can have many requests in progress, each with a connection to
//     an upstream.
type budget struct {
	clients        int64 // connections; 0 for no bound
	decisions      int64 // connections of proxies that ask for decisions
	redis          int64 // connections of Redis clients
	upstreams      int64 // connections; 0 for no bound
	administrators int64
}

const (
	minReserve = 32
	maxReserve = 256
)

// newBudget divides the given number of files; 0 means no bound.
func newBudget(files uint64, f *rulefile.File) budget {
	most := int64(f.Server.MaxConnections)
	b := budget{administrators: maxReserve / 2}
	if files == 0 {
		b.divide(max(most, 0), f)
		return b
	}
	reserve := min(max(int64(files)/8, minReserve), maxReserve)
	b.administrators = reserve / 2
	rest := max(int64(files)-reserve, 2)
	if most == rulefile.ByOpenFiles {
		most = rest / 2
	}
	b.divide(most, f)
	b.upstreams = rest // without a bound for clients, it is not known what remains for upstreams
	if most > 0 {
		b.upstreams = max(rest-most, 1)
	}
	return b
}

// divide divides connections among clients, proxies that ask for decisions, and Redis clients.
func (b *budget) divide(most int64, f *rulefile.File) {
	b.clients, b.decisions, b.redis = most, most, most
	parts := int64(0)
	for _, is := range []bool{len(f.Listen) > 0, f.Decide != nil, f.Redis != nil} {
		if is {
			parts++
		}
	}
	if parts < 2 || most < parts {
		return
	}
	b.decisions, b.redis = most/parts, most/parts
	b.clients = most - (parts-1)*(most/parts)
}

// warn logs a warning if more connections are allowed than the open files permit.
func (b budget) warn(files uint64, log *slog.Logger) {
	if files > 0 && (b.clients == 0 || 2*uint64(b.clients)+minReserve > files) {
		log.Warn("the limit of open files is too low for max_connections: raise LimitNOFILE or ulimit -n",
			"open_files", files, "max_connections", b.clients)
	}
}

// A client may have a share of all connections if the rule file does not set a number. It gets at least minPerClient,
// because a browser could not load a page otherwise.
const (
	perClientShare = 8
	minPerClient   = 16
)

// perClient returns how many of all connections one client may have; 0 for no bound.
func perClient(said int, all int64) int64 {
	if said != rulefile.ByShare {
		return int64(said)
	}
	if all <= minPerClient {
		return 0 // the bound for all clients is lower
	}
	return max(all/perClientShare, minPerClient)
}

// bound sets the bounds of connections of a file.
func (s *Server) bound(f *rulefile.File) {
	b := newBudget(s.config.OpenFiles, f)
	b.warn(s.config.OpenFiles, s.config.Log)
	s.connections[clients].Bound(b.clients, perClient(f.Server.MaxConnectionsPerClient, b.clients))
	s.connections[decisions].Bound(b.decisions, 0)
	s.connections[redisClients].Bound(b.redis, 0)
	s.connections[administrators].Bound(b.administrators, 0)
	s.upstreams.Bound(b.upstreams)
}
