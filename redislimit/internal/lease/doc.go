// Package lease implements what one node has in hand of one key: tokens that the store has charged already, so the node
// may spend them without asking.
//
// A lease has one word that decides, changed by CAS, and a few words about the store's last answers. There is no lock,
// and no call waits for another. Time is an argument, in nanoseconds of this node's monotonic clock. The simulator
// moves it, and nodes need not agree about it.
//
// # The word
//
//	63        42 41     40      39      38       37   24 23      0
//	generation   retired healthy renewing (free)  debt    tokens
//
// tokens are in hand. debt was admitted on overdraft and is not charged yet. renewing says that one caller must ask the
// store and end that renewal by Apply or Fail. healthy says that at least half the limit was left at the last answer. A
// retired lease is no longer in the table: a caller that still has it looks the key up again. Every change except a
// spending changes the generation, so a CAS cannot succeed on a word that changed and changed back.
//
// # Rules
//
// Every interleaving of small scenarios checks each rule (TestScenarios, with -tags explore). Mutants break each rule,
// and the scenarios must catch them (TestMutants). The checks for L1 to L5 are in explore_rules_test.go. L1 is checked
// in counted and spent, for one request in checkTake, and for all requests in check and CheckEnd. L2 is checked in
// counted, spent and serve, L3 in counted and serve, L4 in flagged, serve and check, and L5 in changed, flagged and
// check. L6 and L7, about claims, are checked in explore_claim_test.go. TestNothingIsSpentTwice checks L1 to L3 on real
// cores.
//
// L1. A token is in hand only after the store's answer said that it was charged. Spending is one CAS that takes it
// away, so no two requests spend it. A request that went with a renewal is paid from what the renewal granted, and its
// cost never comes into the hand.
//
// L2. Debt is at most the overdraft, is made only while the lease is healthy, and stays until an answer says that it
// was charged. If the answer is lost, it may be charged twice, but it is never dropped.
//
// L3. Tokens that are given back are taken out of hand first, and are gone if that call is lost. So they are given back
// at most once.
//
// L4. Only the caller that set renewing asks the store, and only it touches the fields that are not words. Only the end
// of its call clears renewing. So each key has at most one call in progress on each node.
//
// L5. Retiring is a CAS on a word that has no tokens, no debt and no renewal, and that has not changed since the
// previous look. Nothing is put into a retired lease. A lease that is not healthy stays until the store has everything
// back, because the key's next lease starts with a new overdraft.
//
// L6. A claim is a hold or the places of a request in flight. It is settled by one CAS: of several calls, one asks the
// store, once. What it gives back is not sent again: a lost answer gives back at most once.
//
// L7. A claim is renewed only while it is open. A settlement during a renewal is sent when the renewal ends, by the
// caller of the renewal. So a renewal never reaches the store after the settlement, where it would keep a place that is
// free.
//
// L1 to L3 give the bound. Over any time T, all nodes together admit at most this many tokens of one key:
//
//	burst + rate*T + O + N*D
//
// O is the tokens in hand when T began, and D the overdraft of each of the N nodes. The tokens that the store charges
// in T, minus those that it takes back, are at most burst + rate*T: the tokens that a key owes, apart from debt, never
// exceed the burst, and decrease by rate*T at most. Each token that was admitted was charged in T, or was in hand
// before (O), or is still debt (N*D).
package lease
