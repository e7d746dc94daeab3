/*
 * The protocol of package shard (rules R1 to R8 and R17 in shard/doc.go), for Spin.
 *
 * One window of slots; takers that do what Table.Take does, resetters (Table.Reset)
 * and sweepers (Table.Sweep). A process is a machine: step says what its next
 * operation on a shared word is, and every d_step below does one of these and the
 * local computation up to the next. So an execution of the model is a sequence of
 * atomic loads, stores and compare-and-swaps, as one of the Go code is.
 *
 * Loads that decide nothing are left out: the key of a slot whose state already says
 * that it is nobody's, and what is read only in case that time has leapt.
 *
 * What is explored is set by -D. Takers choose for every take one of KEYS keys, a
 * cost up to COSTS and a clock below TIMES, each in every way; nothing orders
 * the clocks of two calls. A tick is a token.
 */

#ifndef TAKERS
#define TAKERS    2
#endif
#ifndef TAKES
#define TAKES     1         /* of each taker, one after the other */
#endif
#ifndef RESETTERS
#define RESETTERS 0
#endif
#ifndef SWEEPERS
#define SWEEPERS  0
#endif
#ifndef SLOTS
#define SLOTS     2
#endif
#ifndef KEYS
#define KEYS      1
#endif
#ifndef KEY
#define KEY       1         /* the first of them; 0 looks like the label of an unused slot */
#endif
#ifndef BURST
#define BURST     1
#endif
#ifndef COSTS
#define COSTS     1
#endif
#ifndef TIMES
#define TIMES     1         /* 1: all clocks stand still at 0 */
#endif
#ifndef FIRST
#define FIRST     1         /* what a slot may hold at first: a sum of these */
#endif
#define NEVER_USED  1
#define FREED       2       /* with the label of another, or of the first key */
#define IDLE_OTHER  4       /* a record of another that is idle at time 0 */
#define FULL_OTHER  8       /* a record of another that is drained at time 0 */
#define OWN         16      /* the record of the first key, with any debt */
#ifndef EVICTS
#define EVICTS    1         /* overflow policy: 1 evict, 0 refuse */
#endif
#ifndef STOPS
#define STOPS     0         /* 1: one taker may stop for ever, anywhere */
#endif
#ifndef DIES
#define DIES      0         /* 1: every taker is a process of a shared table, and one may be killed, anywhere */
#endif
#ifndef HEIRS
#define HEIRS     0         /* 1: one more taker attaches, to the seat that the dead one had */
#endif
#ifndef VERSIONS
#define VERSIONS  32        /* a version that would wrap fails BOUND_versions, ... */
#endif
#ifndef WRAPS
#define WRAPS     0         /* ... or is let wrap */
#endif

/* A state word: tag, version, payload. Its payload is the time at which the bucket
 * is full again. */
#define UNUSED 0
#define FREE   1
#define CLAIM  2
#define TENT   3
#define LIVE   4
#define WORD(tag, version, payload) (((tag) << 10) | ((version) << 5) | (payload))
#define TAG(s)        ((s) >> 10)
#define VERSION(s)    (((s) >> 5) & 31)
#define PAYLOAD(s)    ((s) & 31)
#define WITH(s, tag)  WORD(tag, VERSION(s), 0)  /* as s, in the same tenure */
#define CLAIMED(s, by) WORD(CLAIM, (VERSION(s) + GROWS) % VERSIONS, by)

#define MAX(a, b)     ((a) > (b) -> (a) : (b))
#define NONE          255
#define CONTENDED(k)  ((k) >= KEY && (k) < KEY + KEYS)
#define OTHER(i)      (KEY + KEYS + (i))  /* the key that slot i may belong to at first */

/* Mutants: the protocol with one rule broken. */
#ifdef NO_VERSION
#define GROWS 0
#else
#define GROWS 1
#endif
#ifdef NO_MARK
#define WATERMARK 0
#else
#define WATERMARK watermark
#endif
#ifdef SAME_NUMBER
#define NEXT_TIME 0
#else
#define NEXT_TIME 1  /* R17 */
#endif
#ifdef STOP_AT_FREE
#define ENDS(s) (TAG(s) <= FREE)
#else
#define ENDS(s) ((s) == UNUSED)  /* R5 */
#endif

#if KEY + KEYS + SLOTS > 8 || TIMES - 1 + BURST > 31 || VERSIONS > 32 || COSTS > BURST || TAKERS > 4 || HEIRS > DIES
#error out of bounds: keys, with those of the slots, are below 8; payloads and versions below 32; no heir of the living
#endif

/* What is shared. */
short state[SLOTS];
byte  key[SLOTS];
byte  watermark;                 /* R7 */
#if DIES
/* Each taker begins with the seat of its number. The claimant's number is the seat and how often it was taken. */
#define NUMBER_OF(seat) (taken[seat] * 4 + (seat))
#define SEAT(number)   ((number) % 4)
byte  taken[TAKERS];
bit   locked[TAKERS];            /* the kernel's lock of the seat: given back when the process is killed */
#define CLAIMANT number
#else
#define CLAIMANT 0
#endif

/* What is not there in the code, but follows it. */
byte due[KEY + KEYS];       /* when the key's bucket is full, had no record been forgotten */
byte spent[KEY + KEYS];     /* what the key was admitted since the start or its last reset or eviction */
byte started;               /* takers that have begun */
byte busy;                  /* takers that are in a call, or have stopped in one */
bit  halted;
#if DIES
bit  killed;
byte vacant = NONE;         /* the seat of the dead, from when its lock was given back */
bit  inherited;             /* the heir has taken it */
bit  swept;                 /* a whole sweep has come by since then */
#endif

#ifdef REFUSE_WITHOUT_REREAD
/* Then a refusal has no moment that is known; any moment of the call may have been it. */
#define LACKS(me, k, cost, now) want[me] = k; enough[me] = now + BURST - cost; lawful[me] = due[k] > enough[me]
byte want[TAKERS], enough[TAKERS];
bit  lawful[TAKERS];
#else
#define LACKS(me, k, cost, now)
#endif

/* What is asserted, by name, so that a failure tells what is broken. Set and used
 * within one step, so no part of the state. */
hidden byte I1_admitted_to_a_bucket_that_has_it, I1_at_most_burst_and_time;
hidden byte I2_charged_to_the_own_key, I2_record_is_what_was_admitted, I2_debts_have_a_record, I2_refused_on_the_own_bucket;
hidden byte I3_one_live_record, I5_held_by_calls_under_way, I7_idle_when_forgotten, I7_reset_of_the_own_key, BOUND_versions;
hidden byte n, held, live;

/* one_record is that no key has two. */
inline one_record() {
	live = 0;
	for (n : 0 .. SLOTS - 1) {
		if
		:: TAG(state[n]) == LIVE ->
			I3_one_live_record = !(live & (1 << key[n]));
			assert(I3_one_live_record);
			live = live | (1 << key[n])
		:: else
		fi
	}
}

/* check is what must hold after every write. */
inline check() {
	one_record();
	held = 0;
	for (n : 0 .. SLOTS - 1) {
		if
		:: TAG(state[n]) == CLAIM || TAG(state[n]) == TENT -> held++
		:: TAG(state[n]) == LIVE && CONTENDED(key[n]) ->
			I2_record_is_what_was_admitted = PAYLOAD(state[n]) == due[key[n]];
			assert(I2_record_is_what_was_admitted)
		:: else
		fi
	}
	I5_held_by_calls_under_way = held <= busy;
	assert(I5_held_by_calls_under_way);
#ifndef NO_MARK
	for (n : KEY .. KEY + KEYS - 1) {
		I2_debts_have_a_record = (live & (1 << n)) || due[n] <= watermark;
		assert(I2_debts_have_a_record)
	}
#endif
#ifdef REFUSE_WITHOUT_REREAD
	for (n : 0 .. TAKERS - 1) { lawful[n] = lawful[n] || due[want[n]] > enough[n] }
#endif
	n = 0; held = 0; live = 0
}

/* charge enters that the take of this process was admitted at a time, by slot sl. */
inline charge(sl, time) {
	I2_charged_to_the_own_key = key[sl] == k;
	assert(I2_charged_to_the_own_key);
	due[k] = MAX(due[k], time) + cost;
	I1_admitted_to_a_bucket_that_has_it = due[k] <= time + BURST;
	assert(I1_admitted_to_a_bucket_that_has_it);
	spent[k] = spent[k] + cost;
	I1_at_most_burst_and_time = spent[k] <= BURST + time;
	assert(I1_at_most_burst_and_time)
}

/* forget enters that the record in slot sl goes, as one that is idle. */
inline forget(sl) {
	I7_idle_when_forgotten = PAYLOAD(state[sl]) <= now;
	assert(I7_idle_when_forgotten)
}

/* forgive enters that the record in slot sl goes, whatever it owes. */
inline forgive(sl) {
	if
	:: CONTENDED(key[sl]) -> due[key[sl]] = 0; spent[key[sl]] = 0
	:: else
	fi
}

/* claim is the end of one tenure and the begin of the next: R3. */
inline claim(sl) {
	BOUND_versions = WRAPS || VERSION(state[sl]) < VERSIONS - 1;
	assert(BOUND_versions);
	state[sl] = CLAIMED(state[sl], CLAIMANT);
	check()
}

mtype = { START, DONE, STOPPED, KILLED, ATTACH_LOCK, ATTACH_NUMBER };
#define IN_CALL(step) (step != START && step != DONE && step != STOPPED && step != KILLED && step != ATTACH_LOCK && \
	step != ATTACH_NUMBER)
#define HEIR TAKERS

/* ---- Table.Take ---- */

mtype = {
	HIT_KEY, HIT_UNUSED, HIT_STATE, HIT_KEY_AGAIN, HIT_MARK, HIT_STATE_AGAIN, HIT_MOVE, /* Hit */
	MISS_MARK,                                                                          /* Miss: catchUp */
	INSERT_STATE, INSERT_KEY, INSERT_MARK, INSERT_CLAIM,                                /* insert */
	RAISE_WATERMARK, RAISE_SWAP,                                                             /* raise */
	WRITE_KEY, PUBLISH,                                                                 /* publish */
	SETTLE_KEY, SETTLE_UNUSED, SETTLE_STATE, SETTLE_ABORT, SETTLE_KILL, SETTLE_MARK, COMMIT, /* settle */
	FULL_STATE, FULL_KEY, FULL_KEY_AGAIN, FULL_CLAIM                                    /* leastDebt, overflowed */
};

/* Words that a process has read are set to 0 as soon as they decide nothing more, so
 * that states do not differ by them. */

inline hit()  { i = 0; s = 0; mine = 0; t = 0; at = 0; step = HIT_KEY }  /* also: undecided, from insert */
inline miss() { i = 0; s = 0; step = MISS_MARK }                         /* undecided, from Hit */

inline hit_next() {
	i++; s = 0;
	if
	:: i == SLOTS -> miss()
	:: else -> step = HIT_KEY
	fi
}

inline insert_next() {
	if
	:: ENDS(s) || i == SLOTS - 1 -> step = INSERT_MARK; i = 0
	:: else -> i++; step = INSERT_STATE
	fi;
	s = 0
}

/* insert_room takes slot i, whose state is s, if it is the first that may be taken. */
inline insert_room() {
	if
	:: mine == NONE && (TAG(s) <= FREE || TAG(s) == LIVE && PAYLOAD(s) <= now) -> mine = i; t = s
	:: else
	fi
}

inline settle_from(slot) {
	i = slot; s = 0;
	if
	:: i == mine -> i++
	:: else
	fi;
	if
	:: i == SLOTS -> i = 0; step = SETTLE_MARK
	:: else -> step = SETTLE_KEY
	fi
}

inline full_next() {
	i++; s = 0;
	if
	:: i < SLOTS -> step = FULL_STATE
	:: i == SLOTS && mine == NONE -> finish()  /* nothing but inserts of others: NoRoom */
	:: else -> i = 0; step = FULL_KEY_AGAIN
	fi
}

inline finish() {
	busy--; left--;
	i = 0; k = 0; cost = 0; now = 0; at = 0; s = 0; mine = 0; t = 0; step = (left -> START : DONE);
	check()
}

inline admitted(sl, time) { one_record(); charge(sl, time); finish() }

/* refused: the record read was this key's, and had not enough. */
inline refused() {
#ifdef REFUSE_WITHOUT_REREAD
	I2_refused_on_the_own_bucket = lawful[me];
#else
	I2_refused_on_the_own_bucket = MAX(due[k], now) + cost > now + BURST;
#endif
	assert(I2_refused_on_the_own_bucket);
	finish()
}

proctype taker(byte me) {
#if DIES
	mtype step = (me != HEIR -> START : ATTACH_LOCK);
	byte number = (me != HEIR -> NUMBER_OF(me) : 0);  /* R17 */
#else
	mtype step = START;
#endif
	byte left = TAKES;
	byte k, cost, now;      /* what is taken, and when by the taker's clock or the watermark */
	byte i;                 /* the slot that a search is at */
	short s;                /* what was read there */
	byte mine;              /* insert: room; settle: mine; overflowed: the record with the least debt */
	short t;                /* its state: from, claimed, tentative, victim */
	byte at;                /* the watermark, or the time of the commit */
end:	do
	:: atomic { step == START && (started >= me || me == HEIR) ->  /* takers are alike: the order of their first steps does not matter */
		select (k : KEY .. KEY + KEYS - 1);
		select (cost : 1 .. COSTS);
		select (now : 0 .. TIMES - 1);
		d_step {
			printf("taker %d: takes %d of key %d at %d\n", me, cost, k, now);
			started = (me == HEIR -> started : MAX(started, me + 1));
			busy++;
			LACKS(me, k, cost, now);
			step = HIT_KEY
		} }
#if STOPS
	:: d_step { IN_CALL(step) && !halted ->
		printf("taker %d: stops before %e\n", me, step);
		halted = 1; step = STOPPED }
#endif
#if DIES
#ifdef LOCK_OF_THE_LIVING
	:: d_step { IN_CALL(step) && !halted && me != HEIR ->
		halted = 1; locked[me] = 0; vacant = me }
#else
	:: d_step { IN_CALL(step) && !halted && me != HEIR ->
		printf("taker %d: is killed before %e\n", me, step);
		halted = 1; killed = 1; step = KILLED }
	:: d_step { step == KILLED ->
		printf("taker %d: its lock is given back\n", me);
		locked[me] = 0; vacant = me; step = DONE }
#endif
	:: d_step { step == ATTACH_LOCK && vacant != NONE ->
		printf("heir: locks seat %d\n", vacant);
		locked[vacant] = 1; step = ATTACH_NUMBER }
	:: d_step { step == ATTACH_NUMBER ->
		taken[vacant] = taken[vacant] + NEXT_TIME;
		number = NUMBER_OF(vacant); inherited = 1; step = START;
		printf("heir: is claimant %d\n", number) }
#endif
	:: d_step { IN_CALL(step) ->
		printf("taker %d: %e, search at %d, mine %d\n", me, step, i, mine);
		if
		:: step == HIT_KEY ->
			if
			:: key[i] == k -> step = HIT_STATE
#ifdef STOP_AT_FREE
			:: key[i] != k && TAG(state[i]) <= FREE -> miss()
			:: else -> hit_next()
#else
			:: key[i] != k && key[i] == 0 -> step = HIT_UNUSED
			:: else -> hit_next()
#endif
			fi
		:: step == HIT_UNUSED ->
			if
			:: ENDS(state[i]) -> miss()
			:: else -> hit_next()
			fi
		:: step == HIT_STATE ->
			s = state[i];
			if
#ifdef KEY_BEFORE_STATE
			:: TAG(s) == LIVE -> step = HIT_MARK
#else
			:: TAG(s) == LIVE -> step = HIT_KEY_AGAIN
#endif
#ifdef STOP_AT_FREE
			:: TAG(s) <= FREE -> miss()
#endif
			:: else -> hit_next()
			fi
		:: step == HIT_KEY_AGAIN ->  /* R1 */
			if
			:: key[i] == k -> step = HIT_MARK
			:: else -> hit_next()
			fi
		:: step == HIT_MARK ->
			if
			:: now < WATERMARK -> miss()  /* late: R7 */
			:: now >= WATERMARK && MAX(PAYLOAD(s), now) + cost <= now + BURST -> step = HIT_MOVE
#ifdef REFUSE_WITHOUT_REREAD
			:: else -> refused()
#else
			:: else -> step = HIT_STATE_AGAIN
#endif
			fi
		:: step == HIT_STATE_AGAIN ->  /* R2 */
			if
			:: state[i] == s -> refused()
			:: else -> hit()
			fi
		:: step == HIT_MOVE ->
			if
			:: state[i] == s ->
				state[i] = WORD(LIVE, VERSION(s), MAX(PAYLOAD(s), now) + cost);
				admitted(i, now)
			:: else -> hit()
			fi

		:: step == MISS_MARK ->
			now = MAX(now, WATERMARK);
			LACKS(me, k, cost, now);
			mine = NONE; step = INSERT_STATE
		:: step == INSERT_STATE ->
			s = state[i];
			if
#ifdef WAIT_FOR_CLAIM
			:: TAG(s) == CLAIM -> hit()
#endif
			:: TAG(s) < TENT -> insert_room(); insert_next()
			:: else -> step = INSERT_KEY
			fi
		:: step == INSERT_KEY ->  /* after the state: R1 */
			if
#ifdef NO_HELP
			:: key[i] == k -> hit()
#else
			:: key[i] == k && TAG(s) == LIVE -> hit()
			:: key[i] == k && TAG(s) == TENT -> mine = i; t = s; settle_from(0)
#endif
			:: else -> insert_room(); insert_next()
			fi
		:: step == INSERT_MARK ->
			if
			:: now < WATERMARK -> hit()  /* what was read may be misjudged: R7 */
			:: now >= WATERMARK && mine == NONE -> step = FULL_STATE
#if !defined(NO_MARK) && !defined(NO_RAISE)
			:: now >= WATERMARK && mine != NONE && TAG(t) == LIVE && PAYLOAD(t) > watermark -> step = RAISE_WATERMARK
#endif
			:: else -> step = INSERT_CLAIM
			fi
		:: step == RAISE_WATERMARK ->  /* R7: forget nothing that is not idle at the watermark */
			if
			:: PAYLOAD(t) <= watermark -> step = INSERT_CLAIM
			:: else -> at = watermark; step = RAISE_SWAP
			fi
		:: step == RAISE_SWAP ->
			if
			:: watermark == at -> watermark = PAYLOAD(t); check(); step = INSERT_CLAIM
			:: else -> step = RAISE_WATERMARK
			fi;
			at = 0
		:: step == INSERT_CLAIM ->
			if
			:: state[mine] == t ->
				if
				:: TAG(t) == LIVE -> forget(mine)
				:: else
				fi;
				claim(mine);
				t = state[mine];
#ifdef KEY_AFTER_TENT
				step = PUBLISH
#else
				step = WRITE_KEY
#endif
			:: else -> hit()
			fi

		:: step == WRITE_KEY ->  /* under CLAIM: R3 */
			key[mine] = k;
			check();
#ifdef KEY_AFTER_TENT
			settle_from(0)
#else
			step = PUBLISH
#endif
		:: step == PUBLISH ->  /* before the search: R4 */
			state[mine] = WITH(t, TENT);
			t = state[mine];
			check();
#ifdef KEY_AFTER_TENT
			step = WRITE_KEY
#else
#ifdef SEARCH_BEFORE_PUBLISH
			i = 0; step = SETTLE_MARK
#else
			settle_from(0)
#endif
#endif
		:: step == SETTLE_KEY ->
			if
			:: key[i] == k -> step = SETTLE_STATE
#ifdef STOP_AT_FREE
			:: key[i] != k && TAG(state[i]) <= FREE -> i = 0; step = SETTLE_MARK
			:: else -> settle_from(i + 1)
#else
			:: key[i] != k && key[i] == 0 -> step = SETTLE_UNUSED
			:: else -> settle_from(i + 1)
#endif
			fi
		:: step == SETTLE_UNUSED ->
			if
			:: ENDS(state[i]) -> i = 0; step = SETTLE_MARK
			:: else -> settle_from(i + 1)
			fi
		:: step == SETTLE_STATE ->
			s = state[i];
			if
			:: TAG(s) < TENT -> settle_from(i + 1)
#ifdef BOTH_ABORT
			:: TAG(s) == LIVE || TAG(s) == TENT -> s = 0; step = SETTLE_ABORT
#else
			:: TAG(s) == LIVE || TAG(s) == TENT && i < mine -> s = 0; step = SETTLE_ABORT
#endif
#ifdef NO_KILL
			:: else -> settle_from(i + 1)
#else
			:: else -> step = SETTLE_KILL
#endif
			fi
		:: step == SETTLE_ABORT ->  /* R6: the live one stays, else the lower one */
			if
			:: state[mine] == t -> state[mine] = WITH(t, FREE); check()
			:: else
			fi;
			hit()
		:: step == SETTLE_KILL ->  /* R6: kill the higher one */
			if
			:: state[i] == s -> state[i] = WITH(s, FREE); check(); settle_from(i + 1)
#ifdef IGNORE_FAILED_KILL
			:: else -> settle_from(i + 1)
#else
			:: else -> settle_from(0)
#endif
			fi
		:: step == SETTLE_MARK ->  /* after the search: R7 */
#ifdef MARK_BEFORE_SEARCH
			at = now;
#else
			at = MAX(now, WATERMARK);
#endif
			step = COMMIT
		:: step == COMMIT ->
			if
#ifdef FULL_COMMIT
			:: state[mine] == t -> state[mine] = WORD(LIVE, VERSION(t), at); check(); hit()
#else
			:: state[mine] == t ->  /* with the committer's take: R8 */
				state[mine] = WORD(LIVE, VERSION(t), at + cost);
				admitted(mine, at)
#endif
			:: else -> hit()
			fi

		:: step == FULL_STATE ->
			s = state[i];
			if
			:: TAG(s) == CLAIM || TAG(s) == TENT -> full_next()
			:: TAG(s) <= FREE -> hit()
			:: else -> step = FULL_KEY
			fi
		:: step == FULL_KEY ->
			if
			:: key[i] == k -> mine = i; t = s; i = 0; s = 0; step = FULL_KEY_AGAIN
			:: key[i] != k && (mine == NONE || MAX(PAYLOAD(s), now) < MAX(PAYLOAD(t), now)) -> mine = i; t = s; full_next()
			:: else -> full_next()
			fi
		:: step == FULL_KEY_AGAIN ->
			if
			:: key[mine] == k || PAYLOAD(t) <= now -> hit()  /* it has a record, or there is room */
			:: key[mine] != k && PAYLOAD(t) > now && EVICTS -> step = FULL_CLAIM
			:: else -> finish()  /* NoRoom */
			fi
		:: step == FULL_CLAIM ->
			if
			:: state[mine] == t -> forgive(mine); claim(mine); t = state[mine]; step = WRITE_KEY
			:: else -> hit()
			fi
		:: else -> assert(false)
		fi }
	od
}

/* ---- Table.Reset, of the first key ---- */

mtype = { LOOK_STATE, LOOK_KEY, LOOK_STATE_AGAIN, FREE_RESET };

inline look()      { i = 0; s = 0; step = LOOK_STATE }
inline look_done() { i = 0; s = 0; step = DONE }

inline look_next() {
	i++; s = 0;
	if
	:: i == SLOTS -> look_done()
	:: else -> step = LOOK_STATE
	fi
}

proctype resetter() {
	mtype step = LOOK_STATE;
	byte i;
	short s;
end:	do
	:: d_step { step != DONE ->
		printf("resetter: %e, search at %d\n", step, i);
		if
		:: step == LOOK_STATE ->
			s = state[i];
			if
			:: ENDS(s) -> look_done()
			:: TAG(s) == LIVE -> step = LOOK_KEY
			:: else -> look_next()
			fi
		:: step == LOOK_KEY ->  /* R1 */
			if
			:: key[i] == KEY -> step = LOOK_STATE_AGAIN
			:: else -> look_next()
			fi
		:: step == LOOK_STATE_AGAIN ->  /* R2 */
			if
			:: state[i] == s -> step = FREE_RESET
			:: else -> look()
			fi
		:: step == FREE_RESET ->
			if
			:: state[i] == s ->
				I7_reset_of_the_own_key = key[i] == KEY;
				assert(I7_reset_of_the_own_key);
				forgive(i);
				state[i] = WITH(s, FREE);
				check();
				look_done()
			:: else -> look()
			fi
		:: else -> assert(false)
		fi }
	od
}

/* ---- Table.Sweep ---- */

mtype = {
	SWEEP_WATERMARK, SWEEP_RAISE, SWEEP_SWAP, SWEEP_STATE, SWEEP_WATERMARK_AGAIN, FREE_IDLE, /* of a record */
	ABORT_TENT, DEAD_TAKEN, DEAD_LOCK, ABANDON                                              /* of what is under way */
};

#if DIES
/* after_death is whether the sweep that begins finds nothing of the dead but what it can free: not while its seat is
 * being taken, when the lock is another's and the number still its own. */
inline after_death() { sure = vacant != NONE && killed && inherited == HEIRS }

/* sweep_done: from then on nothing is held by the call of the dead. */
inline sweep_done() {
	if
	:: sure && !swept -> swept = 1; busy--; check()
	:: else
	fi;
	sure = 0
}
#else
#define after_death() skip
#define sweep_done()  skip
#endif

inline sweep_next() {
	i++; s = 0;
	if
	:: i == SLOTS -> i = 0; now = 0; step = DONE; sweep_done()
	:: else -> step = SWEEP_STATE
	fi
}

proctype sweeper() {
	mtype step = START;
	byte i, now, at;
	short s;
#if DIES
	bit sure;
#endif
end:	do
	:: atomic { step == START ->
		select (now : 0 .. TIMES - 1);
		d_step { printf("sweeper: at %d\n", now); after_death(); step = SWEEP_WATERMARK } }
	:: d_step { step != START && step != DONE ->
		printf("sweeper: %e, search at %d\n", step, i);
		if
		:: step == SWEEP_WATERMARK -> now = MAX(now, watermark); step = SWEEP_RAISE
		:: step == SWEEP_RAISE ->
			if
#ifdef NO_MARK
			:: true -> step = SWEEP_STATE
#else
			:: now <= watermark -> step = SWEEP_STATE
			:: else -> at = watermark; step = SWEEP_SWAP
#endif
			fi
		:: step == SWEEP_SWAP ->
			if
			:: watermark == at -> watermark = now; check(); step = SWEEP_STATE
			:: else -> step = SWEEP_RAISE
			fi;
			at = 0
		:: step == SWEEP_STATE ->
			s = state[i];
			if
			:: TAG(s) == LIVE -> step = SWEEP_WATERMARK_AGAIN
#ifndef LEAVE_TENT
			:: TAG(s) == TENT -> step = ABORT_TENT
#endif
#if DIES && !defined(LEAVE_CLAIMS)
#ifdef FREE_ANY_CLAIM
			:: TAG(s) == CLAIM -> step = ABANDON
#else
			:: TAG(s) == CLAIM -> step = DEAD_TAKEN
#endif
#endif
			:: else -> sweep_next()
			fi
		:: step == ABORT_TENT ->
			if
			:: state[i] == s -> state[i] = WITH(s, FREE); check()
			:: else
			fi;
			sweep_next()
#if DIES
		:: step == DEAD_TAKEN ->  /* R17: the seat was given back, and taken by another; */
			if
			:: NUMBER_OF(SEAT(PAYLOAD(s))) != PAYLOAD(s) -> step = ABANDON
			:: else -> step = DEAD_LOCK
			fi
		:: step == DEAD_LOCK ->  /* or given back alone */
			if
			:: locked[SEAT(PAYLOAD(s))] -> sweep_next()
			:: else -> step = ABANDON
			fi
		:: step == ABANDON ->
			if
#ifdef FREE_ANOTHER_CLAIM
			:: TAG(state[i]) == CLAIM -> state[i] = WITH(state[i], FREE); check()
#else
			:: state[i] == s -> state[i] = WITH(s, FREE); check()
#endif
			:: else
			fi;
			sweep_next()
#endif
		:: step == SWEEP_WATERMARK_AGAIN ->  /* R7 */
#ifndef NO_MARK
			now = watermark;
#endif
			if
			:: PAYLOAD(s) <= now -> step = FREE_IDLE
			:: else -> sweep_next()
			fi
		:: step == FREE_IDLE ->
			if
			:: state[i] == s -> forget(i); state[i] = WITH(s, FREE); check()
			:: else
			fi;
			sweep_next()
		:: else -> assert(false)
		fi }
	od
}

init {
	byte i, debt;
	bit own, unused;
	atomic {
		do
		:: i == SLOTS -> break
		:: i < SLOTS && (FIRST & NEVER_USED) -> unused = 1; i++
		:: i < SLOTS && !unused && (FIRST & FREED) -> state[i] = WORD(FREE, 1, 0); key[i] = OTHER(i); i++
		:: i < SLOTS && !unused && (FIRST & FREED) -> state[i] = WORD(FREE, 1, 0); key[i] = KEY; i++
		:: i < SLOTS && !unused && (FIRST & IDLE_OTHER) -> state[i] = WORD(LIVE, 1, 0); key[i] = OTHER(i); i++
		:: i < SLOTS && !unused && (FIRST & FULL_OTHER) -> state[i] = WORD(LIVE, 1, BURST); key[i] = OTHER(i); i++
		:: i < SLOTS && !unused && !own && (FIRST & OWN) ->
			select (debt : 0 .. BURST);
			state[i] = WORD(LIVE, 1, debt); key[i] = KEY;
			due[KEY] = debt; spent[KEY] = debt;
			debt = 0; own = 1; i++
		od;
		skip;
		d_step {
			for (i : 0 .. SLOTS - 1) { printf("slot %d: tag %d payload %d key %d\n", i, TAG(state[i]), PAYLOAD(state[i]), key[i]) };
			check(); i = 0; own = 0; unused = 0
		}
#if DIES
		for (i : 0 .. TAKERS - 1) { taken[i] = 1; locked[i] = 1 }
#endif
		for (i : 0 .. TAKERS - 1 + HEIRS) { run taker(i) }
#if RESETTERS
		for (i : 1 .. RESETTERS) { run resetter() }
#endif
#if SWEEPERS
		for (i : 1 .. SWEEPERS) { run sweeper() }
#endif
		i = 0
	}
}
