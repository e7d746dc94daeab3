// Package actions implements what an operator may do to clients for a limited time: ban, exempt or shadow a network, a
// key of a rule, or a whole rule. An action ends at a fixed wall-clock time. It records who made it and why. A target
// has at most one action, so a new action replaces the previous one. There are at most [Most] actions.
//
// [Table.Judge] decides what the actions mean for a request, before any rule counts the request:
//
//   - Several actions may be for networks that contain the client's address. Only the action for the network with the
//     longest prefix counts. If this action exempts the network, no rule applies to the request, and no ban of a rule
//     or a key applies either.
//   - Otherwise the request is refused if its network, a rule that it meets, or its key under such a rule is banned.
//   - Otherwise the action for the request's key under a rule says how this rule is applied. If the key has no action,
//     the action for the rule counts. If the rule has no action either, the action for the network counts.
//
// The client's address is the address that rules use: it is read from a header if a trusted proxy has written the
// header. A client on a Unix socket has no address and is in no network.
//
// A key is stored as a MAC of its text under a secret. So the MAC still identifies the key after a restart. If keys are
// not shown, the text of a key cannot be read from the file. The action for a key applies only while the rule has the
// same form of key.
//
// Without any action, Judge costs one atomic load. [Table.Open] keeps actions in a file, which several processes may
// share. A change is written to the file before it takes effect. [Table.Refresh] reads the changes of other processes.
package actions
