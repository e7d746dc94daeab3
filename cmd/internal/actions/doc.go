// Package actions implements what an operator may do to clients for a limited time: ban, exempt or shadow a network, a
// key of a rule, or a whole rule. An action has an end, by the time of day, and records who made it and why. A target
// has at most one action: a new one replaces it. There are at most [Most] actions.
//
// [Table.Judge] decides what the actions mean for a request, before any rule counts the request:
//
//   - Of the networks that contain the client's address, the one with the longest prefix counts. If it is exempt, no
//     rule applies, and neither does a ban of a rule or a key.
//   - Otherwise the request is refused if its network, a rule that it meets, or its key under such a rule is banned.
//   - Otherwise the action for the request's key under a rule says how this rule is applied. Without one, it is the
//     action for the rule, and without that, the action for the network.
//
// The address is the one by which rules count: a header is read if a trusted proxy has written it. A client without an
// address, on a Unix socket, is in no network.
//
// A key is stored as a MAC of its text under a secret. So it means the same after a restart, and cannot be read if keys
// are not shown. Its action applies only while the rule has the same form of key.
//
// Without any action, Judge costs one atomic load. [Table.Open] keeps actions in a file, which several processes may
// share. A change is written to the file before it takes effect. [Table.Refresh] reads the changes of other processes.
package actions
