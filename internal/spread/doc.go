// Package spread is one token bucket for requests on all processors: each holds tokens that the bucket has charged
// already, and spends them by writing a word that no other processor touches.
//
// This comment is the protocol. The code refers to its rules by number.
//
// # Glossary
//
//	bucket      the token bucket, in the shared word
//	cell        a word with tokens, on a cache line of its own. The own cell of a call is that of its processor. Any
//	            call may read and change any cell
//	owe         as in package atomicbucket: what a bucket lacks to be full
//	hold        the tokens in cells are held. The bucket owes them, as if they had been taken
//	exchange    tokens that go from the bucket to a cell (draw) or back (return)
//	share       the most tokens that a cell holds
//	τ           a millisecond
//	terms       the rate and the burst, and the share that follows from them
//
// # The law
//
// U1. Over any time t it admits at most burst + rate * (t + τ). What was given back counts as not admitted, and what
// was charged unasked as taken.
//
// U2. A request is charged once, and no token is lost: the bucket owes what was admitted and what is held, and never
// more than that.
//
// U3. A refusal is right for an exact bucket of the same burst and rate to which the same requests were admitted, at
// some moment of the call. So of requests for one token it admits, up to any time, as many as an exact bucket, or
// more.
//
// U4. A cell draws at most what requests whose own cell it is took in the last τ.
//
// # The words
//
// The shared word:
//
//	 63  62 61        54   53   52       46 45                        0
//	+------+------------+------+-----------+---------------------------+
//	| plan | who        |parity| version   | full                      |
//	+------+------------+------+-----------+---------------------------+
//
// full is the tick at which the bucket is full, modulo 2^46. who is the number of the cell whose exchange made this
// state, from 1 on, and parity the lowest bit of that exchange's number; who is 0 if no exchange made it. plan says
// which terms are the present ones. version changes with every change.
//
// The word of a cell:
//
//	 63                       26 25  24 23                            0
//	+---------------------------+------+-------------------------------+
//	| exchange                  | kind | tokens                        |
//	+---------------------------+------+-------------------------------+
//
// exchange is the number of the latest exchange. ready: the tokens are held. drawing: they are held once the shared
// word says that this exchange was made, and else are none. returning: they are held until it says so.
//
//	       begin, with t             made               settle
//	ready ---------------> drawing --------> drawing ------------> ready, t held
//	(none)                    |  shared word changed
//	  ^                       |  without it: drop
//	  '-----------------------'
//	       begin                     made               settle
//	ready ---------------> returning ------> returning -----------> ready, none held
//	(t held)                t held              none held
//
// "made" is the change of the shared word, by one compare-and-swap.
//
// # A request for n tokens
//
//	spend   The cell has n: take them from it.
//	take    Else look at the shared word. It has n: take them there, or draw more than n into the cell and spend them.
//	gather  It has fewer: look at all cells. One has n: spend them there. All cells and the bucket together have n:
//	        return what a cell holds, and begin again. They have fewer, and the shared word is unchanged: refuse.
//
// # The rules, each with what breaks without it
//
// S1. Tokens are spent by a compare-and-swap of the one word in which they are, and a draw is charged by the
// compare-and-swap that makes it. Else two requests would spend one token, or one would be spent that was not charged.
//
// S2. Whoever changes the shared word has settled the exchange that made its present state before. That state is the
// only proof that the exchange was made. To settle is a compare-and-swap of the cell, by any call. A call reads the
// shared word again after the cell: it was the same before and after, so the exchange in the cell is the one that it
// names, if the parities are equal. Two exchanges of a cell that were made one after the other have different
// parities. Without that a call that was held up would settle a later exchange that was not made: tokens that nobody
// charged.
//
// S3. Only the call that began a draw makes it, from the shared word that it had read before it began. So once the
// shared word has changed otherwise the draw can never be made. Who has read the cell after the shared word, and has
// then changed that, drops it. If any call could make a draw later, no call could drop one. A bucket that never again
// has that many tokens at once would then leave the cell of a call that is stopped forever unused.
//
// S4. Any call that has read the cell after the shared word may make a return. It can always be made, so nothing is
// dropped. What is returned is held until it is made, and in the bucket from then on: there is no moment at which it
// is in neither or in both. If the cell were read first, the return could be made in between, and would be made twice.
// A call that needs tokens makes the returns that it meets, and so waits for nobody.
//
// S5. A cell draws no more than its share, and only into a cell that holds nothing. The shares of all cells are what
// comes back in τ, or less. A draw takes at most what the bucket has, divided by the cells: what one takes others
// would have to come for. Larger shares break U1.
//
// S6. A refusal, and a look, reads the shared word, then all cells, then the shared word once more, and stands if that
// is unchanged. Cells get tokens by exchanges only, and every exchange changes the shared word. So at the second
// reading cells hold no more than was counted, and the bucket has what it had. Without it a token could go from a cell
// that was not read yet to one that was.
//
// S7. The terms are read after the shared word, which says which they are. Those of a plan stay in their place until
// the third change after it. What a call is told by the shared word as it was met before is by these terms only if they
// began before that; else it reads the word. (A call that is suspended between its look and its note of it, for four
// changes, leaves a note by which a later call of the cell is told wrong numbers once. They decide nothing.) A draw
// is made from a shared word (S3), so under the terms by which it was measured. A change of the terms changes the
// shared word, and then takes back what every cell holds: that may be more than the new share. Nothing else is drawn by
// the old terms.
//
// S8. What was taken out of the bucket for a cell is counted from a time that is τ ago at most, and a draw is for no
// more than that count. The cell is empty when it draws, so all of it was used. A call that takes tokens from
// another's cell sets its count back. This keeps tokens where requests are. U1 does not rest on it.
//
// S9. The circle of full is shorter than a process may run. The word at says when the shared word was changed, to an
// eighth of a half circle, and is written before it. A bucket of which at is more than a quarter of the circle ago
// owes nothing, and is woken before anything else: a call makes the shared word one that owes nothing now, and then
// writes at. Without at an idle bucket would seem to owe again. If at were written first, the bucket would seem to owe
// again until the call has changed the shared word, which it may never do if it is stopped.
//
// S10. A refund gives back of the n tokens of a request what has not come back since: their cost less the time that
// has passed. Let C be the sum of all that may still be given back so, H what is held, D what the bucket owes. A
// request adds the same to C and to D, or takes from H what it adds to C. While C is not 0 it falls by time at least
// as D does. A return and a refund take from D at most what they take from H and C. So H + C - D is never more than H
// was when C was 0, which S5 bounds: U1. If more were given back, tokens would be that others have had by time
// already. Terms know when they replaced others. A receipt of an earlier time gives nothing back under them: its call
// spent tokens of a cell before the change and read the terms after it.
//
// # Why the law holds
//
// U1. Let D and H be what is owed and held. A draw adds as much to both. Spending takes from H what it admits. A
// return takes from D at most what it takes from H. From a moment a to b, what was admitted is what was drawn or taken
// in the bucket, less what was returned, plus H(a) - H(b). What was drawn or taken, less what was returned, is at most
// burst - D(a) + rate * t. H(a) is at most rate * τ (S5).
//
// U3. What the bucket owes less what is held is at most what an exact bucket owes to which the same was admitted: each
// exchange leaves the difference unchanged or lowers it, each request adds the same to both, and time takes from the
// bucket's debt as much, or leaves it at 0 when the exact one owes nothing either, or less than is held. At a refusal
// n tokens more would be above the burst for that difference (S6), and so for the exact bucket.
//
// Lock-free (I5). A compare-and-swap that fails has met another call's that succeeded: a request, or a step of an
// exchange. An exchange has three steps. A draw is dropped only after a change of the shared word, and those are
// requests, exchanges that were made, and calls other than requests. A call that is stopped in a draw leaves a cell
// that requests pass until the next of them drops the draw.
//
// # Clocks
//
// Spending reads no clock: it is admitted at whatever time the word is swapped. A call that reads the clock and is
// then held up is decided at the time that it read, as everywhere in weir.
package spread
