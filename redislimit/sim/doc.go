// Package sim simulates a limit that many machines share, in virtual time. A simulation may have a thousand nodes and a
// million keys. It compares strategies of enforcing the limit: how many tokens each strategy admits, how many it
// wrongly refuses, and how often it calls the store.
//
// Leases run the code of real nodes, package lease. The traffic, the network, the store, the queues and the shares are
// simulated. The same [Scenario], which includes a seed, gives the same report.
package sim
