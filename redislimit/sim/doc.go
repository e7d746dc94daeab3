// Package sim simulates, in virtual time, a limit that many machines share, even with a thousand nodes and a million
// keys. For several strategies of enforcing the limit, it reports how many tokens each admits, how many it wrongly
// refuses, and how often it calls the store.
//
// Leases run the code of real nodes, package lease. The traffic, the network, the store, the queues and the shares are
// simulated. The same [Scenario], which includes a seed, gives the same report.
package sim
