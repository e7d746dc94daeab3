//go:build unix

package redistest

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestClusterReplica(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for other processes, most of the time")
	}
	t.Parallel()
	c := StartCluster(t)
	replica, master := c.AddReplica(0), c.Nodes[0]
	name := "k"
	for i := 0; c.Owner(c.Slot(name)) != 0; i++ {
		name = "k" + strconv.Itoa(i)
	}
	master.Do("SET", name, "v")
	replica.Do("CLUSTER", "FAILOVER")
	c.AwaitMaster(replica)
	assert.Equal(t, "v", replica.Do("GET", name), "the replica has not what its master had")
	_, err := master.ask("GET", name)
	assert.ErrorContains(t, err, "MOVED")

	master.AwaitReplica()
	master.Forget()
	assert.Equal(t, "0", master.Do("DBSIZE"))
	replica.Stop()
	c.AwaitMaster(master)
	assert.Empty(t, master.Do("GET", name))
	assert.Equal(t, "OK", master.Do("SET", name, "w"))
}

func TestSlotOnItsWay(t *testing.T) {
	t.Parallel()
	c := StartCluster(t)
	slot := c.Slot("{k}")
	from := c.Owner(slot)
	to := (from + 1) % masters
	c.Nodes[from].Do("MSET", "{k}1", "v", "{k}2", "w")
	c.BeginMove(slot, to)
	require.Equal(t, 1, c.MoveKeys(slot, to, 1))
	assert.Equal(t, from, c.Owner(slot))
	_, err := c.Nodes[from].ask("MGET", "{k}1", "{k}2")
	assert.ErrorContains(t, err, "TRYAGAIN")
	_, err = c.Nodes[from].ask("GET", "{k}new")
	assert.ErrorContains(t, err, "ASK "+strconv.Itoa(slot)+" "+c.Nodes[to].Addr())
	require.Equal(t, 1, c.MoveKeys(slot, to, 100))
	require.Zero(t, c.MoveKeys(slot, to, 100))
	c.EndMove(slot, to)
	assert.Equal(t, to, c.Owner(slot))
	assert.Equal(t, "v\nw", c.Nodes[to].Do("MGET", "{k}1", "{k}2"))
}

func TestSentinels(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for other processes, most of the time")
	}
	t.Parallel()
	master := Start(t)
	replica := StartReplica(t, master)
	s := StartSentinels(t, master, replica)
	assert.Equal(t, "redis://"+s.Nodes[0].Addr()+"?master_set=weir&addr="+s.Nodes[1].Addr()+"&addr="+s.Nodes[2].Addr(), s.URL())
	s.AwaitMaster(master)
	master.Do("SET", "k", "v")
	require.Equal(t, "1", master.Do("WAIT", "1", "10000"))
	master.Stop()
	s.AwaitMaster(replica)
	assert.Equal(t, "v", replica.Do("GET", "k"))
	assert.Equal(t, "OK", replica.Do("SET", "k", "w"), "it is a replica still")

	other := Start(t)
	s.Replace(other)
	s.Nodes[1].Stop() // the failover does not wait for the old master
	s.AwaitMaster(other)
}

func TestFailoverByAnOperator(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for other processes, most of the time")
	}
	t.Parallel()
	master := Start(t)
	replica := StartReplica(t, master)
	s := StartSentinels(t, master, replica)
	s.Failover()
	s.AwaitMaster(replica)
	assert.Equal(t, "OK", replica.Do("SET", "k", "v"))
}
