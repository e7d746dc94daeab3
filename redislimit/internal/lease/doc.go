// Package lease is what one node holds of one key: tokens that the store has charged already,
// and so may be spent without asking.
//
// A lease is one word that decides, changed by CAS, and a few that say what the store last did. There is
// no lock, and no call waits for another. Time is an argument, in nanoseconds of a clock of this node that
// never goes back: the simulator moves it, and no two nodes have to agree about it.
//
// # The word
//
//	63        42 41     40      39      38       37   24 23      0
//	generation   retired healthy renewing (free)  debt    tokens
//
// tokens are in hand, debt was admitted on overdraft and is not charged yet. renewing says that
// one caller has the duty to ask the store and to end that by Apply or Fail. healthy says that by the last
// answer at least half the limit was left. A retired lease is no longer in the table: a caller that still
// has it looks the key up again. The generation changes with whatever is not a spending, so
// that a CAS never takes a word for the one that it was.
//
// # Rules
//
// Each is checked in every interleaving of small scenarios (TestScenarios, with -tags explore), and is broken by
// mutants that these must catch (TestMutants). The checks are in explore_rules_test.go: L1 in counted and spent, for a
// request in checkTake and for all together in check and CheckEnd; L2 in counted, spent and serve; L3 in counted and
// serve; L4 in flagged, serve and check; L5 in changed, flagged and check; L6 and L7, of claims, in
// explore_claim_test.go. On real cores TestNothingIsSpentTwice shows L1 to L3.
//
// L1. A token is in hand only after the store's answer said that it was charged. Spending is one CAS that takes it
// away, so no two requests spend it. A request that went with a renewal is paid from what that granted, and what it
// costs never comes into the hand.
//
// L2. Debt is at most the overdraft, is made only while the lease is healthy, and stays until an answer says
// that it was charged. When the answer is lost it may be charged twice, never not at all.
//
// L3. Tokens that are given back are taken out of hand first, and are gone if that call is
// lost: at most once.
//
// L4. Only the caller that set renewing asks the store and touches the fields that are no words, and it is cleared only
// by the end of that call. So for each key and node there is one call under way.
//
// L5. Retiring is a CAS on a word with nothing in it: no tokens, no debt, no renewal; and that was the same at the
// last look. Nothing is put into a retired lease. One that is not healthy stays until the store has everything back:
// the key's next lease begins with a new overdraft.
//
// L6. A claim, which is a hold or the places of a request in flight, is settled by one CAS: of several calls one asks
// the store, once. What it gives back is not sent again: a lost answer gives back at most once.
//
// L7. A claim is renewed only while it is open. While a renewal is under way a settlement waits for its end, and is
// sent then by whoever made it. So the store never hears of a renewal after the settlement, which would keep a place
// that is free.
//
// From L1 to L3: over any time T all nodes together admit of one key at most
//
//	burst + rate*T + O + N*D
//
// O being the tokens in hand at its beginning and D the overdraft of each of the N nodes. What the
// store charges in T, less what it takes back, is at most burst + rate*T, because what is owed never
// exceeds the burst, but for debt, and falls by rate*T at most. Whatever was admitted was charged in T, or in
// hand before (O), or is debt still (N*D).
package lease
