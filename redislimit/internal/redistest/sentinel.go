//go:build unix

package redistest

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
)

const masterSet = "weir"

// Sentinels are three Sentinel processes that watch a master. When the master has ended, they replace it by its replica
// after about three seconds.
type Sentinels struct {
	Nodes []*Server

	t testing.TB
}

// StartSentinels starts three sentinels, which know each other and the replica after a second or two.
func StartSentinels(t testing.TB, master, replica *Server) *Sentinels {
	t.Helper()
	s := &Sentinels{t: t}
	for range 3 {
		node := (&Server{
			config: []string{
				fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 2", masterSet, master.port),
				"sentinel down-after-milliseconds " + masterSet + " 1000",
				"sentinel failover-timeout " + masterSet + " 3000",
			},
			arguments: []string{"--sentinel"},
		}).start(t, false)
		// With these settings, the sentinels find each other sooner. They also stay active when the machine stands
		// still for two seconds.
		node.Do("SENTINEL", "DEBUG", "publish-period", "200", "info-period", "1000", "tilt-trigger", "60000")
		s.Nodes = append(s.Nodes, node)
	}
	for _, node := range s.Nodes {
		node.await("sentinels that know all", func() error {
			info := node.Do("SENTINEL", "MASTER", masterSet)
			for _, want := range []string{"num-slaves\n1\n", "num-other-sentinels\n2\n", "flags\nmaster\n"} {
				if !strings.Contains(info, want) {
					return fmt.Errorf("%s: no %q: %s", node.Addr(), want, info)
				}
			}
			// A sentinel does not choose a replica from which it has had no recent message.
			if replicas := node.Do("SENTINEL", "REPLICAS", masterSet); !strings.Contains(replicas, strconv.Itoa(replica.port)) || !strings.Contains(replicas, "master-link-status\nok\n") {
				return fmt.Errorf("%s: its replicas: %s", node.Addr(), replicas)
			}
			return nil
		})
	}
	// This period is Sentinel's default. If a sentinel gets no news of a failover for four times the period, it undoes
	// the failover.
	for _, node := range s.Nodes {
		node.Do("SENTINEL", "DEBUG", "publish-period", "2000")
	}
	return s
}

// URL returns the sentinels' addresses and their name for the master as one URL.
func (s *Sentinels) URL() string {
	addresses := make([]string, len(s.Nodes))
	for i, node := range s.Nodes {
		addresses[i] = node.Addr()
	}
	return SentinelURL(addresses...)
}

// SentinelURL returns the URL of sentinels at these addresses, or of proxies in front of them.
func SentinelURL(addresses ...string) string {
	url := "redis://" + addresses[0] + "?master_set=" + masterSet
	for _, address := range addresses[1:] {
		url += "&addr=" + address
	}
	return url
}

// Failover makes the replica the master, as an operator does. About ten seconds later, the old master becomes the
// replica of the new one.
func (s *Sentinels) Failover() {
	s.t.Helper()
	s.Nodes[0].Do("SENTINEL", "FAILOVER", masterSet)
}

// Replace makes another server the master without informing clients, as an operator who reconfigures the sentinels.
func (s *Sentinels) Replace(master *Server) {
	s.t.Helper()
	// All sentinels forget the old master first. Otherwise a sentinel that still knows it would announce it to the
	// others, with a higher epoch.
	for _, node := range s.Nodes {
		node.Do("SENTINEL", "REMOVE", masterSet)
	}
	for _, node := range s.Nodes {
		node.Do("SENTINEL", "MONITOR", masterSet, "127.0.0.1", strconv.Itoa(master.port), "2")
	}
}

// AwaitMaster returns when all running sentinels report that this server is the master.
func (s *Sentinels) AwaitMaster(master *Server) {
	s.t.Helper()
	for _, node := range s.Nodes {
		if !node.isRunning() {
			continue
		}
		awaitFor(node.t, electionTimeout, "a new master", func() error {
			reply := strings.Split(node.Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterSet), "\n")
			if address := net.JoinHostPort(reply[0], reply[len(reply)-1]); address != master.Addr() {
				return fmt.Errorf("%s: the master is at %s and not at %s", node.Addr(), address, master.Addr())
			}
			return nil
		})
	}
	// Sentinel closes the connections to a server whose role it changes.
	master.await("a new connection", func() error { _, err := master.ask("PING"); return err })
}
