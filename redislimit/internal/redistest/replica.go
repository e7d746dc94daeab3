//go:build unix

package redistest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// AddReplica starts a replica of Nodes[master], with the node's data, and does not add it to Nodes. The replica becomes
// the master about three seconds after its master has ended, or after CLUSTER FAILOVER.
func (c *Cluster) AddReplica(master int) *Server {
	c.t.Helper()
	replica := start(c.t, true, nodeConfig...)
	for _, node := range c.Nodes {
		replica.Do("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(node.port), strconv.Itoa(node.busPort))
	}
	replica.await("the replica to know the cluster", func() error {
		if info := replica.Do("CLUSTER", "INFO"); !strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d\r\n", masters+1)) ||
			!strings.Contains(info, fmt.Sprintf("cluster_slots_ok:%d\r\n", slots)) {
			return fmt.Errorf("CLUSTER INFO: %s", info)
		}
		return nil
	})
	replica.Do("CLUSTER", "REPLICATE", c.ids[master])
	replica.AwaitReplica()
	for _, node := range c.Nodes {
		node.await("a replica that all know", func() error {
			if _, role := c.role(node, replica); !slices.Contains(role, "slave") {
				return fmt.Errorf("%s: the replica at %s is %q", node.Addr(), replica.Addr(), role)
			}
			return nil
		})
	}
	return replica
}

// AwaitMaster returns when the server and all running nodes regard the server as a master with slots.
func (c *Cluster) AwaitMaster(server *Server) {
	c.t.Helper()
	nodes := append([]*Server{server}, c.Nodes...)
	for _, node := range nodes {
		if !node.isRunning() {
			continue
		}
		awaitFor(node.t, electionTimeout, "a new master", func() error {
			if ranges, role := c.role(node, server); ranges == 0 || !slices.Contains(role, "master") {
				return fmt.Errorf("%s: %s is %q with %d ranges of slots", node.Addr(), server.Addr(), role, ranges)
			}
			return nil
		})
	}
}

// role returns what node reports about server: the number of its ranges of slots, and its flags, such as master.
func (c *Cluster) role(node, server *Server) (ranges int, flags []string) {
	c.t.Helper()
	id := server.Do("CLUSTER", "MYID")
	for _, line := range strings.Split(node.Do("CLUSTER", "NODES"), "\n") {
		if fields := strings.Fields(line); len(fields) >= 8 && fields[0] == id {
			return len(fields) - 8, strings.Split(fields[2], ",")
		}
	}
	return 0, nil
}

// AwaitReplica returns when the server is a replica and has its master's data. Its connections may break meanwhile.
func (s *Server) AwaitReplica() {
	s.t.Helper()
	s.await("it to be a replica", func() error {
		info, err := s.ask("INFO", "replication")
		if err != nil || !strings.Contains(info, "role:slave") || !strings.Contains(info, "master_link_status:up") {
			return fmt.Errorf("%s: INFO replication: %v, %s", s.Addr(), err, info)
		}
		return nil
	})
}

// Forget makes a replica lose all its data, as if its master had not sent any yet.
func (s *Server) Forget() {
	s.t.Helper()
	s.Do("CONFIG", "SET", "replica-read-only", "no")
	s.Do("FLUSHALL")
	s.Do("CONFIG", "SET", "replica-read-only", "yes")
}
