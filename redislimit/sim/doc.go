// Package sim simulates a limit that many machines keep together, in virtual time: what is
// admitted, refused wrongly and asked of the store, by several ways of keeping it side by side.
// It answers what no test on one machine can, such as a thousand nodes and a million keys.
//
// The leases are those of the nodes themselves, package lease; what is simulated is the traffic, the
// network, the store, and the rest of a node: how questions travel together, when the store counts as
// lost, and the node's share then. A run depends on its [Scenario] alone: the same seed gives the same report.
package sim
