// Package resp answers Redis clients: the commands CL.THROTTLE, RL.THROTTLE, GCRA and WEIR.*, in RESP2 and RESP3. A
// limiter of [engine.TokenBuckets] decides. Each command has its limit as an argument. docs/redis-door.md describes the
// commands.
//
// # A batch
//
// A connection has a goroutine, which reads the available bytes, answers the commands, and writes all answers at once
// (conn.go). The complete commands of one read are a batch (batch.go). Commands that take tokens are gathered, and
// [engine.Limiter.TakeBatch] decides them together, before another kind of command is answered. So answers keep their
// order, and each command sees the effects of earlier ones (take.go). The arguments of a command are parts of the read
// buffer (parser.go). Parsing, deciding and answering a command that takes tokens does not allocate.
//
// # Bounds
//
// bounds.go bounds the memory that a client can use. If the announced length of a command is too large, the command is
// refused before memory is allocated for it. Answers are written when a bounded buffer is full, and a client that does
// not read them is dropped. An idle connection has one small buffer.
package resp
