// Package sim simulates a limit that many machines share, in virtual time. It compares several ways of keeping the
// limit: what is admitted, what is refused wrongly, and how often the store is asked. It answers questions that no test
// on one machine can, such as about a thousand nodes and a million keys.
//
// The leases are the nodes' own code, package lease. The rest is simulated: the traffic, the network, the store, how
// questions share a call, when the store counts as lost, and the node's share then. A run depends on its [Scenario]
// alone: the same seed gives the same report.
package sim
