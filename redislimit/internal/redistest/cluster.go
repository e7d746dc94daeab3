//go:build unix

package redistest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

const (
	slots   = 16384
	masters = 3
)

// nodeConfig lets a replica replace its master even if the two were disconnected for a long time.
var nodeConfig = []string{
	"cluster-node-timeout 2000", "cluster-require-full-coverage no", "cluster-config-file nodes.conf",
	"cluster-replica-validity-factor 0",
}

// A Cluster has three masters. It has no replicas until [Cluster.AddReplica] is called. If a node stops, the slots of
// the other nodes are still served.
type Cluster struct {
	Nodes []*Server

	t   testing.TB
	ids []string
}

// StartCluster starts three servers, each with a third of the slots. This takes about three seconds.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	for i := range masters {
		node := start(t, true, nodeConfig...)
		c.Nodes, c.ids = append(c.Nodes, node), append(c.ids, node.Do("CLUSTER", "MYID"))
		first, last := i*slots/masters, (i+1)*slots/masters-1
		node.Do("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(last))
		node.Do("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
	}
	for _, node := range c.Nodes {
		for _, other := range c.Nodes {
			if other != node {
				node.Do("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(other.port), strconv.Itoa(other.busPort))
			}
		}
	}
	for _, node := range c.Nodes {
		node.await("a whole cluster", func() error {
			info := node.Do("CLUSTER", "INFO")
			for _, want := range []string{"cluster_state:ok", fmt.Sprintf("cluster_slots_ok:%d", slots), fmt.Sprintf("cluster_known_nodes:%d", masters)} {
				if !strings.Contains(info, want+"\r\n") {
					return fmt.Errorf("%s: no %s: %s", node.Addr(), want, info)
				}
			}
			return nil
		})
	}
	return c
}

// URL returns the addresses of all nodes as one URL.
func (c *Cluster) URL() string {
	var addresses []string
	for _, node := range c.Nodes[1:] {
		addresses = append(addresses, "addr="+node.Addr())
	}
	return c.Nodes[0].URL() + "?" + strings.Join(addresses, "&")
}

// Slot returns the slot of a key.
func (c *Cluster) Slot(key string) int {
	c.t.Helper()
	slot, err := strconv.Atoi(c.Nodes[0].Do("CLUSTER", "KEYSLOT", key))
	if err != nil {
		c.t.Fatalf("slot of %q: %v", key, err)
	}
	return slot
}

// Owner returns the index in Nodes of the node that serves a slot.
func (c *Cluster) Owner(slot int) int {
	c.t.Helper()
	client := c.Nodes[0].Client()
	ranges, err := client.Do(context.Background(), client.B().ClusterSlots().Build()).ToArray()
	if err != nil {
		c.t.Fatalf("CLUSTER SLOTS: %v", err)
	}
	for _, r := range ranges {
		fields, err := r.ToArray()
		if err != nil || len(fields) < 3 {
			c.t.Fatalf("CLUSTER SLOTS: %v, %d fields where at least 3 belong", err, len(fields))
		}
		first, _ := fields[0].AsInt64()
		last, _ := fields[1].AsInt64()
		if slot < int(first) || slot > int(last) {
			continue
		}
		master, err := fields[2].ToArray()
		if err != nil || len(master) < 3 {
			c.t.Fatalf("CLUSTER SLOTS: %v, a master of %d fields", err, len(master))
		}
		id, _ := master[2].ToString()
		for i := range c.ids {
			if c.ids[i] == id {
				return i
			}
		}
	}
	c.t.Fatalf("slot %d has no owner among the %d nodes", slot, len(c.Nodes))
	return -1
}

// MoveSlot moves a slot and its keys to Nodes[to], as an operator does. After it, every node knows about the move, but
// clients do not.
func (c *Cluster) MoveSlot(slot, to int) {
	c.t.Helper()
	c.BeginMove(slot, to)
	for c.MoveKeys(slot, to, 100) > 0 {
	}
	c.EndMove(slot, to)
}

// BeginMove starts the move of a slot to Nodes[to]. From then on, the old node answers for the keys that it still has.
// The new node answers for the keys that it has got, and for new keys.
func (c *Cluster) BeginMove(slot, to int) {
	c.t.Helper()
	from := c.Owner(slot)
	if from == to {
		c.t.Fatalf("slot %d is on node %d already", slot, to)
	}
	number := strconv.Itoa(slot)
	c.Nodes[to].Do("CLUSTER", "SETSLOT", number, "IMPORTING", c.ids[from])
	c.Nodes[from].Do("CLUSTER", "SETSLOT", number, "MIGRATING", c.ids[to])
}

// MoveKeys moves some keys of a slot whose move has begun, at most the given number, and returns how many it has moved.
func (c *Cluster) MoveKeys(slot, to, maxKeys int) int {
	c.t.Helper()
	source, target := c.Nodes[c.Owner(slot)], c.Nodes[to]
	text := source.Do("CLUSTER", "GETKEYSINSLOT", strconv.Itoa(slot), strconv.Itoa(maxKeys))
	if text == "" {
		return 0
	}
	keys := strings.Split(text, "\n")
	source.Do(append([]string{"MIGRATE", "127.0.0.1", strconv.Itoa(target.port), "", "0", "5000", "KEYS"}, keys...)...)
	return len(keys)
}

// EndMove ends the move of a slot without keys, and announces the new owner to every node.
func (c *Cluster) EndMove(slot, to int) {
	c.t.Helper()
	from, number := c.Owner(slot), strconv.Itoa(slot)
	// The new owner is informed first. Otherwise the old owner would redirect clients to a node that redirects them
	// back.
	c.Nodes[to].Do("CLUSTER", "SETSLOT", number, "NODE", c.ids[to])
	c.Nodes[from].Do("CLUSTER", "SETSLOT", number, "NODE", c.ids[to])
	for i, node := range c.Nodes {
		if i != from && i != to {
			node.Do("CLUSTER", "SETSLOT", number, "NODE", c.ids[to])
		}
	}
}
