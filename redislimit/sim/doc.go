// Package sim simulates, in virtual time, a limit that many machines share. It compares several strategies for keeping
// the limit: how much each admits, how much it wrongly refuses, and how often it calls the store. It answers questions
// that no test on one machine can answer, such as questions about a thousand nodes and a million keys.
//
// The leases run the same code as in real nodes, package lease. The rest is simulated: the traffic, the network, the
// store, how questions share a call, when the store counts as lost, and the node's share while it is lost. A run
// depends only on its [Scenario]: the same seed gives the same report.
package sim
