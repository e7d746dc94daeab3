// Package sim simulates a limit that many machines share, in virtual time. It compares several ways of keeping the
// limit: how much each admits, how much it wrongly refuses, and how often it calls the store. It answers questions that
// no test on one machine can, such as about a thousand nodes and a million keys.
//
// The leases are the nodes' own code, package lease. The rest is simulated: the traffic, the network, the store, how
// questions share a call, when the store counts as lost, and the node's share then. A run depends on its [Scenario]
// alone: the same seed gives the same report.
package sim
