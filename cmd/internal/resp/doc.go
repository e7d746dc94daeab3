// Package resp answers clients of Redis: CL.THROTTLE, RL.THROTTLE, GCRA and WEIR.* in RESP2 and RESP3, decided by a
// limiter of [engine.TokenBuckets]. The limit comes with each command. docs/redis-door.md describes the commands.
//
// # A batch
//
// A connection has a goroutine, which reads what there is, answers it, and writes all answers at once (conn.go). The
// complete commands of one read are a batch (batch.go). Commands that take tokens are gathered, and decided together by
// [engine.Limiter.TakeBatch] before any other command is answered, so that answers keep their order and each command
// sees what those before it did (take.go). The arguments of a command are parts of the read buffer (parser.go). To
// parse, decide and answer such a command does not allocate.
//
// # Bounds
//
// Nothing that a client sends makes the server hold more than bounds.go says: a command is refused by its announced
// length before there is room for it, answers are written when a bounded buffer is full, and a client that does not
// read them is dropped. A connection that waits holds one small buffer.
package resp
