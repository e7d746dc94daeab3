// Package actions implements what an operator may do to clients for a limited time: ban, exempt or shadow a network, a
// key of a rule, or a whole rule. An action ends at a fixed wall-clock time, and records who made it and why. A new
// action replaces the previous one for its target. There are at most [MaxActions] actions.
//
// [Table.Judge] decides what the actions mean for a request, before any rule counts the request:
//
//   - If the client's address is in several networks with actions, only the action for the network with the longest
//     prefix counts. If this action exempts the network, no rule applies to the request, and no ban of a rule or a key
//     applies either.
//   - Otherwise the request is refused if its network, a rule that it meets, or its key under such a rule is banned.
//   - Otherwise one action applies to each rule: the action for the request's key, or else for the rule, or else for
//     the network.
//
// The client's address is the address that rules use. It comes from a header if a trusted proxy has written the header.
// A client on a Unix socket has no address and is in no network.
//
// A key is stored as a MAC of its text under a secret. This MAC identifies the key even after a restart. If the rule
// file does not show keys, the file of actions does not reveal their texts. An action for a key applies only while the
// rule has the same form of key.
//
// Without any action, Judge costs one atomic load. [Table.Open] keeps actions in a file, which several processes may
// share. A change takes effect after it is in the file. [Table.Refresh] reads the changes of other processes.
package actions
