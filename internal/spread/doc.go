// Package spread implements one token bucket that is spread over all processors. Each processor has a cell with tokens
// that the bucket has already charged. A request spends tokens of its processor's cell by changing one word. Other
// processors seldom write this word.
//
// This comment is the protocol. The code refers to its rules by number.
//
// # Glossary
//
//	bucket      the token bucket, in the shared word
//	cell        a word with tokens, on a separate cache line. Each processor has a cell. Calls on the processor use
//	            its cell first, but any call may read and change any cell
//	owed        the tokens that the bucket lacks until it is full, as in package atomicbucket
//	held        the tokens in cells. The bucket owes them, as if they had been taken
//	exchange    a move of tokens from the bucket to a cell (draw) or back (return)
//	share       the most tokens that a cell may hold
//	τ           a millisecond
//	terms       the rate and the burst, and the share that follows from them
//
// # The law
//
// U1. Over any time t the bucket admits at most burst + rate * (t + τ). Charges count as admitted tokens. Tokens that
// were given back do not count.
//
// U2. A request is charged once, and no token is lost. The bucket owes exactly the admitted tokens and the tokens in
// cells.
//
// U3. Compare the bucket with an exact bucket of the same burst and rate that has admitted the same requests. If the
// bucket refuses a request, the exact bucket would refuse the request, too, at some moment of the call. So up to any
// time, the bucket admits at least as many requests for one token as an exact bucket does.
//
// U4. A cell draws at most as many tokens as the requests on its processor took in the last τ.
//
// # The words
//
// The shared word:
//
//	 63  62 61        54   53   52       46 45                        0
//	+------+------------+------+-----------+---------------------------+
//	| plan | cell       |parity| version   | full                      |
//	+------+------------+------+-----------+---------------------------+
//
// The field full is the tick at which the bucket is full, modulo 2^46. If an exchange made this state, the field cell
// is the number of the exchange's cell, from 1 on, and parity is the lowest bit of the exchange's number. If no
// exchange made the state, the field cell is 0. The field plan says which terms are current. The field version changes
// with every change of the word.
//
// The word of a cell:
//
//	 63                       26 25  24 23                            0
//	+---------------------------+------+-------------------------------+
//	| exchange                  | kind | tokens                        |
//	+---------------------------+------+-------------------------------+
//
// The field exchange is the number of the cell's latest exchange. The kinds are:
//
//	ready      the tokens are held
//	drawing    the tokens are held as soon as the shared word shows that this exchange was made, and not before
//	returning  the tokens are held until the shared word shows that this exchange was made
//
// The transitions of a cell:
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
// An exchange is made by one compare-and-swap of the shared word.
//
// # A request for n tokens
//
//	spend   If the cell has n tokens, take them from it.
//	take    Otherwise look at the shared word. If the bucket has n tokens, take them there. Or draw more than n
//	        tokens into the cell, and spend n of them.
//	gather  If the bucket has fewer tokens, look at all cells. If one cell has n tokens, spend them there. If all
//	        cells and the bucket together have n tokens, return what one cell holds, and start over. If together
//	        they have fewer, and the shared word is unchanged, refuse.
//
// # The rules, each with what breaks without it
//
// S1. Tokens are spent by a compare-and-swap of the one word that has them. A draw is charged by the compare-and-swap
// that makes the draw. Without this rule two requests could spend one token, or a token could be spent that was not
// charged.
//
// S2. A call that changes the shared word first settles the exchange that made the current state, because that state is
// the only proof that the exchange was made. Any call may settle, by a compare-and-swap of the cell. The call first
// reads the cell, and then the shared word again. If the shared word is unchanged and the parities are equal, the
// exchange in the cell is the one that the shared word names. The reason is that two successive exchanges of a cell
// have different parities. Without this rule a suspended call could settle a later exchange that was not made, and
// create tokens that were never charged.
//
// S3. Only the call that began a draw makes it, and only from the shared word that this call had read before. So if the
// shared word changes in another way, the draw can never be made. A call that has read the cell after the shared word,
// and then changed the shared word, drops the draw. If any call could make a draw later, no call could drop a draw. If
// the call that began a draw then stopped, and the bucket never again had enough tokens for it, the cell would be
// unusable forever.
//
// S4. Any call that has read the cell after the shared word may make a return. A return can always be made, so it is
// never dropped. The tokens of a return are held until it is made, and in the bucket from then on. They are never in
// both, and never in neither. If the cell were read before the shared word, another call could make the return between
// the two reads, and the return would be made twice. A call that needs tokens makes the returns that it finds, so it
// waits for no other call.
//
// S5. A cell draws at most its share, and only if it holds nothing. The shares of all cells together are at most what
// comes back in τ. Larger shares break U1. A draw also takes at most the tokens of the bucket divided by the number of
// cells. If it took more, calls on other processors would have to take back the excess.
//
// S6. A refusal, or a peek, reads the shared word, then all cells, then the shared word again. The result is valid if
// the shared word is unchanged. Cells get tokens only by exchanges, and every exchange changes the shared word. So at
// the second read, the cells hold at most the tokens that were counted, and the bucket has the same tokens as at the
// first read. Without this rule, a token could move from a cell that was not read yet to a cell that was already read.
//
// S7. The terms are read after the shared word, which says which terms are current. The terms of a plan stay in their
// place until the terms have changed three more times after the change that replaces them. A call may use a note of an
// earlier shared word only if the current terms began before that word was read. Otherwise it reads the shared word
// again. (There is one gap. A call can be suspended for four changes between its read of the shared word and its note.
// Then a later call on the same cell once reports wrong numbers, which decide nothing.) A draw is made only from the
// shared word that its call had read (S3), so the terms by which its size was chosen are still current. A change of the
// terms changes the shared word. Then it takes back what every cell holds, because a cell may hold more than the new
// share. After that, no cell has tokens that were drawn under the old terms.
//
// S8. Each cell has a count of the tokens that requests took out of the bucket for this cell. The count begins at most
// τ ago. A draw takes at most as many tokens as the count. A cell is empty when it draws. So requests have used all
// tokens of the count. A call that takes tokens from the cell of another processor resets the count of that cell. This
// rule keeps tokens where the requests are. U1 does not depend on it.
//
// S9. The field full is a place on a circle of 2^46 ticks, and a process may run for longer than one round. So there is
// one more word, changedAt. It has the time of the shared word's last change. It is written before that change, and may
// be behind by a sixteenth of the circle. If its time is more than a quarter of the circle ago, the bucket owes
// nothing. Then a call first wakes the bucket: it changes the shared word to one that owes nothing now, and then writes
// changedAt. Without this word, an idle bucket would seem to owe tokens again after half a round. If a call that wakes
// the bucket wrote changedAt first, the bucket would seem to owe tokens again until the call has changed the shared
// word, and forever if the call stops.
//
// S10. A refund of n tokens gives back what has not come back with time since the request: the cost of n tokens minus
// the time that has passed. Let C be the sum of everything that may still be given back in this way. Let H be what the
// cells hold, and D the debt of the bucket. A request adds the same amount to C and to D, or moves it from H to C.
// While C is not 0, it falls with time at least as fast as D. A return or a refund takes from D at most what it takes
// from H and C. So H + C - D is never more than H was when C was last 0, and S5 bounds H. This gives U1. If more were
// given back, the bucket would have tokens that other requests have already used. Terms record when they replaced the
// previous terms. A receipt from a time before its terms began gives nothing back. Its call may have spent tokens of a
// cell before the change, and read the terms after the change.
//
// # Why the law holds
//
// U1. Let D be the debt of the bucket and H what the cells hold. A draw adds the same amount to D and to H. A call that
// spends tokens takes from H what it admits. A return takes from D at most what it takes from H. Between two moments a
// and b, the number of admitted tokens is: the tokens that were drawn, plus the tokens that were taken in the bucket,
// minus the tokens that were returned, plus H(a) - H(b). The drawn tokens plus the taken tokens minus the returned
// tokens are at most burst - D(a) + rate * t, and H(a) is at most rate * τ (S5).
//
// U3. Call the bucket's debt minus the held tokens the difference. The difference is at most the debt of an exact
// bucket that has admitted the same requests. Each exchange leaves the difference unchanged or lowers it. Each request
// adds the same to the difference and to the debt of the exact bucket, and time takes the same from both. If the
// bucket's debt reaches 0, the difference is at most 0. At a refusal, the difference plus n tokens would exceed the
// burst (S6). So the debt of the exact bucket plus n tokens would exceed the burst, too.
//
// Lock-free (I5). If a compare-and-swap fails, a compare-and-swap of another call has succeeded, and has completed a
// request or one of the three steps of an exchange. A draw is dropped only after a change of the shared word, and every
// such change completes a request, an exchange, or a call other than a request. If a call stops in a draw, requests do
// not use the cell of the draw until a request drops the draw.
//
// # Clocks
//
// A call that spends tokens of a cell reads no clock for this: the request is admitted at the moment at which the word
// of the cell is swapped. As everywhere in weir, a call may be suspended after it has read the clock. Then it is
// decided by the time that it has read.
package spread
