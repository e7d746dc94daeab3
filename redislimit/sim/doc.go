// Package sim simulates, in virtual time, a limit that many machines share. It compares several strategies for
// enforcing the limit. For each strategy, it reports how many tokens the strategy admits, how many it wrongly refuses,
// and how often it calls the store. It answers questions that no test on one machine can answer, such as questions
// about a thousand nodes and a million keys.
//
// Leases run the code of real nodes, package lease. The rest is simulated: the traffic, the network, the store, how
// questions share a call, when the store counts as lost, and the shares of nodes while the store is lost. A run depends
// only on its [Scenario], which includes the seed of the random numbers. So the same Scenario gives the same report.
package sim
