// Package lease implements leases. A lease contains the tokens of one key that one node has in hand. The store has
// charged these tokens already, so the node may spend them without a call to the store.
//
// A lease decides by one word, which is changed by CAS. A few other words describe the store's last answers. There is
// no lock, and no call waits for another call. The time is an argument, in nanoseconds of this node's monotonic clock,
// so that a simulator can set it. The clocks of nodes need not agree.
//
// # The word
//
//	63        42 41     40      39      38       37   24 23      0
//	generation   retired healthy renewing (free)  debt    tokens
//
// The fields mean:
//
//   - tokens: in hand
//   - debt: admitted on overdraft and not charged yet
//   - renewing: one caller must ask the store, and then call Apply or Fail
//   - healthy: at least half the limit was left at the last answer
//   - retired: the lease is no longer in the table, so a caller must look up the key again
//   - generation: incremented by every change except spending, so that no CAS succeeds on a word that has changed and
//     changed back
//
// # Rules
//
// TestScenarios (with -tags explore) runs every interleaving of small scenarios, and checks each rule. TestMutants
// breaks each rule by mutants, which the scenarios must catch. The checks are in explore_rules_test.go, and for claims
// (L6 and L7) in explore_claim_test.go. TestNothingIsSpentTwice checks L1 to L3 on real cores.
//
// L1. A token is in hand only after an answer of the store has said that it was charged. Spending a token is one CAS
// that takes it away, so no two requests spend the same token. A request that goes with a renewal is paid from the
// tokens that the renewal brings. These tokens never count as tokens in hand.
//
// L2. The debt is at most the overdraft. It grows only while the lease is healthy. It stays until an answer says that
// it was charged. If the answer is lost, the debt may be charged twice, but it is never dropped.
//
// L3. Before tokens are given back to the store, they are taken out of hand. If the call that gives them back is lost,
// the tokens are gone. So they are given back at most once.
//
// L4. Only the caller that set renewing asks the store, and only it touches the fields that are not words. Only the end
// of its call clears renewing. So each key has at most one call in progress on each node.
//
// L5. A lease is retired by a CAS on its word. The word must show no tokens, no debt and no renewal, and must not have
// changed since the previous call of Expire. Nothing is put into a retired lease. A lease that is not healthy is kept
// until the key has its complete limit again. Otherwise the key's next lease would start with a new overdraft that the
// limit cannot pay.
//
// L6. A claim belongs to a hold or to the places of a request in flight. It is settled by one CAS: if several calls try
// to settle it, only one of them asks the store, and only once. If the answer is lost, the settlement is not sent
// again, so its tokens are given back at most once.
//
// L7. A claim is renewed only while it is open. If it is settled during a renewal, the caller of the renewal sends the
// settlement at the end. So a renewal never reaches the store after the settlement, where it would occupy a place that
// is already free.
//
// L1 to L3 give the bound. Over any time T, all nodes together admit at most this many tokens of one key:
//
//	burst + rate*T + O + N*D
//
// O is the number of tokens in hand when T began. N is the number of nodes, and D is the overdraft of each node. Apart
// from debt, a key never owes the store more than the burst. In T, at most rate*T of the tokens that it owes come back
// with time. So the tokens that the store charges in T, minus the tokens that nodes give back, are at most burst +
// rate*T. Each admitted token was charged in T, was in hand when T began (O), or is still debt (N*D).
package lease
