// Package actions has what an operator does to clients for a time: ban, exempt or shadow a network, a key of a rule, or
// a whole rule. An action has an end, by the time of day, and says who made it and why. There is one for a target: a
// new one replaces it. There are at most [Most].
//
// [Table.Judge] says what they mean for a request, before any rule takes something from it:
//
//   - Of the networks that have the client's address the longest prefix counts. An exempt network is past all rules,
//     and past bans of rules and keys.
//   - Else a request is refused that a ban is for: of its network, of a rule that it meets, or of its key there.
//   - Else each rule is applied as the action for its key says; if there is none, as the one for the rule says; else
//     as the one for the network does.
//
// The address is the one that rules count by: a header counts where a trusted proxy has written it. A client without an
// address, on a Unix socket, is in no network.
//
// A key is kept as a MAC of its text under a secret, so that it means the same after a restart and cannot be read where
// keys are not shown. It counts only while the rule has the same form of key.
//
// Without an action a judgment is one atomic load. [Table.Open] keeps actions in a file, which several processes may
// share. A change is written there before it is in force, and what others have written is taken over by
// [Table.Refresh].
package actions
