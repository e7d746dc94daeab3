// Package resp answers Redis clients: the commands CL.THROTTLE, RL.THROTTLE, GCRA and WEIR.*, in RESP2 and RESP3. A
// limiter of [engine.TokenBuckets] decides, and each command has its limit as an argument. docs/redis-door.md describes
// the commands.
//
// # A batch
//
// Each connection has a goroutine that reads the available bytes, answers the commands, and writes all answers at once
// (conn.go). The complete commands of one read are a batch (batch.go). Takes are gathered, and
// [engine.Limiter.TakeBatch] decides them together before any other command is answered, so answers keep their order
// and each command sees the effects of earlier ones (take.go). Arguments are parts of the read buffer (parser.go).
// Parsing, deciding and answering a take does not allocate.
//
// # Bounds
//
// bounds.go bounds the memory of a client. A command whose announced length is too large is refused before memory is
// allocated for it. Answers are written when a bounded buffer is full, and a client that does not read them is dropped.
// An idle connection has one small buffer.
package resp
