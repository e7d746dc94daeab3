// Package resp is a server for Redis clients. It has the commands CL.THROTTLE, RL.THROTTLE, GCRA and WEIR.*, in RESP2
// and RESP3. Each command has its limit as an argument, and a limiter of [engine.TokenBuckets] decides.
// docs/redis-door.md describes the commands.
//
// # A batch
//
// Each connection has a goroutine. It reads the available bytes, answers the commands, and writes all answers at once
// (conn.go). The complete commands of one read are a batch (batch.go). A run of takes is decided together by
// [engine.Limiter.TakeBatch], before any other command is answered. So answers keep their order, and each command sees
// the effects of earlier commands (take.go). Arguments are parts of the read buffer (parser.go). Parsing, deciding and
// answering a take does not allocate.
//
// # Bounds
//
// The memory for a client is bounded (bounds.go). If the announced length of a command is too large, the command is
// refused before memory is allocated for it. Answers are written when a bounded buffer is full. A client that does not
// read them is dropped. An idle connection has one small buffer.
package resp
