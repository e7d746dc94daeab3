// Package lease implements the tokens of one key that one node has in hand: the store has charged them already, so the
// node may spend them without asking.
//
// A lease has one word that decides, which is changed by CAS, and a few words about the store's last answers. There is
// no lock, and no call waits for another. Time is an argument, in nanoseconds of this node's monotonic clock. So a
// simulator can set the time, and the clocks of nodes need not agree.
//
// # The word
//
//	63        42 41     40      39      38       37   24 23      0
//	generation   retired healthy renewing (free)  debt    tokens
//
// tokens is the number of tokens in hand. debt is the number of tokens that were admitted on overdraft and are not
// charged yet. renewing means that one caller must ask the store and then end that renewal by Apply or Fail. healthy
// means that at least half the limit was left at the last answer. A retired lease is no longer in the table: a caller
// that still has it looks the key up again. Every change except a spending changes the generation, so a CAS cannot
// succeed on a word that changed and changed back.
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
// L1. A token is in hand only after the store's answer said that it was charged. Spending is one CAS that takes the
// token away, so no two requests spend it. A request that went with a renewal is paid from the tokens that the renewal
// granted, and the tokens for its cost never get into the node's hand.
//
// L2. Debt is at most the overdraft, is made only while the lease is healthy, and stays until an answer says that it
// was charged. If the answer is lost, the debt may be charged twice, but it is never dropped.
//
// L3. Tokens that are given back are first taken out of hand. If the call that gives them back is lost, they are gone.
// So they are given back at most once.
//
// L4. Only the caller that set renewing asks the store, and only it touches the fields that are not words. Only the end
// of its call clears renewing. So each key has at most one call in progress on each node.
//
// L5. Retiring is a CAS on a word that has no tokens, no debt and no renewal, and that has not changed since the
// previous call of Expire. Nothing is put into a retired lease. A lease that is not healthy is kept until the store has
// all tokens back, because the key's next lease starts with a new overdraft.
//
// L6. A claim belongs to a hold or to the places of a request in flight. It is settled by one CAS: if several calls
// settle it, only one of them asks the store, and only once. Tokens that it gives back are not sent again if the answer
// is lost, so they are given back at most once.
//
// L7. A claim is renewed only while it is open. If it is settled during a renewal, the caller of the renewal sends the
// settlement when the renewal ends. So a renewal never reaches the store after the settlement. If it did, it would keep
// a place that is already free.
//
// L1 to L3 give the bound. Over any time T, all nodes together admit at most this many tokens of one key:
//
//	burst + rate*T + O + N*D
//
// O is the tokens in hand when T began, and D the overdraft of each of the N nodes. The tokens that the store charges
// in T, minus the tokens that it takes back, are at most burst + rate*T. The reason is that the tokens that a key owes,
// apart from debt, never exceed the burst, and decrease by at most rate*T. Each token that was admitted was charged in
// T, or was in hand before (O), or is still debt (N*D).
package lease
