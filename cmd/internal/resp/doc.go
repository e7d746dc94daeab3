// Package resp answers Redis clients: the commands CL.THROTTLE, RL.THROTTLE, GCRA and WEIR.*, in RESP2 and RESP3. A
// limiter of [engine.TokenBuckets] decides. The limit comes with each command. docs/redis-door.md describes the
// commands.
//
// # A batch
//
// A connection has a goroutine, which reads the available bytes, answers the commands, and writes all answers at once
// (conn.go). The complete commands of one read are a batch (batch.go). Commands that take tokens are collected, and
// [engine.Limiter.TakeBatch] decides them together before any other command is answered. So answers keep their order,
// and each command sees the effects of earlier ones (take.go). The arguments of a command are parts of the read buffer
// (parser.go). Parsing, deciding and answering such a command does not allocate.
//
// # Bounds
//
// bounds.go bounds the memory that a client can use. A command is refused by its announced length, before memory is
// allocated for it. Answers are written when a bounded buffer is full, and a client that does not read them is dropped.
// An idle connection has one small buffer.
package resp
