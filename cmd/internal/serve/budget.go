package serve

import (
	"log/slog"

	"github.com/weir-go/weir/cmd/internal/rulefile"
)

// A budget divides the number of files that the process may open. Each connection is a file.
//
//   - The reserve is for listeners, the rule file, connections to the store, and the administrator's connections. The
//     administrator gets half of it. So a server can be inspected even if all its other files are in use. But no client
//     can use up all files through the administrator's listener.
//   - Clients, proxies that ask for decisions, and Redis clients share half of the remaining files. If the rule file
//     sets max_connections, they share this number instead. A group without a listener gets nothing.
//   - Upstreams get what remains. Over HTTP/2, one client may need several connections to an upstream.
type budget struct {
	clients        int64 // connections of clients; 0 means no bound
	decisions      int64 // connections of proxies that ask for decisions
	redis          int64 // connections of Redis clients
	upstreams      int64 // connections to upstreams; 0 means no bound
	administrators int64
}

const (
	minReserve = 32
	maxReserve = 256
)

// newBudget distributes files; 0 means no bound.
func newBudget(files uint64, f *rulefile.File) budget {
	connections := int64(f.Server.MaxConnections)
	b := budget{administrators: maxReserve / 2}
	if files == 0 {
		b.divide(max(connections, 0), f)
		return b
	}
	reserve := min(max(int64(files)/8, minReserve), maxReserve)
	b.administrators = reserve / 2
	remaining := max(int64(files)-reserve, 2)
	if connections == rulefile.ByOpenFiles {
		connections = remaining / 2
	}
	b.divide(connections, f)
	b.upstreams = remaining // if the number of clients is not bounded, it is unknown what remains for upstreams
	if connections > 0 {
		b.upstreams = max(remaining-connections, 1)
	}
	return b
}

// divide distributes a number of connections. Clients, proxies that ask for decisions, and Redis clients get equal
// parts.
func (b *budget) divide(connections int64, f *rulefile.File) {
	b.clients, b.decisions, b.redis = connections, connections, connections
	parts := int64(0)
	for _, hasListener := range []bool{len(f.Listen) > 0, f.Decide != nil, f.Redis != nil} {
		if hasListener {
			parts++
		}
	}
	if parts < 2 || connections < parts {
		return
	}
	b.decisions, b.redis = connections/parts, connections/parts
	b.clients = connections - (parts-1)*(connections/parts)
}

func (b budget) warn(files uint64, log *slog.Logger) {
	if files > 0 && (b.clients == 0 || 2*uint64(b.clients)+minReserve > files) {
		log.Warn("the limit of open files is too low for max_connections: raise LimitNOFILE or ulimit -n",
			"open_files", files, "max_connections", b.clients)
	}
}

// If the rule file sets no number, one client may have 1/perClientShare of all connections. It may always have
// minPerClient, because a browser opens several connections to load a page.
const (
	perClientShare = 8
	minPerClient   = 16
)

// perClient returns how many connections one client may have; 0 means no bound. The parameter setting is the value of
// max_connections_per_client, and total is the number of connections of all clients.
func perClient(setting int, total int64) int64 {
	if setting != rulefile.ByShare {
		return int64(setting)
	}
	if total <= minPerClient {
		return 0 // the bound for all clients together is not larger
	}
	return max(total/perClientShare, minPerClient)
}

func (s *Server) applyBounds(f *rulefile.File) {
	b := newBudget(s.config.OpenFiles, f)
	b.warn(s.config.OpenFiles, s.config.Log)
	s.connections[clients].Bound(b.clients, perClient(f.Server.MaxConnectionsPerClient, b.clients))
	s.connections[decisions].Bound(b.decisions, 0)
	s.connections[redisClients].Bound(b.redis, 0)
	s.connections[administrators].Bound(b.administrators, 0)
	s.upstreams.Bound(b.upstreams)
}
