package resp

import "time"

const (
	// maxCommand is the longest command, in bytes, and so the longest key.
	maxCommand = 64 << 10
	// maxArguments is how many arguments a command may have, including its name.
	maxArguments = 1024
	// smallBuffer is the buffer of a connection while it waits for a command.
	smallBuffer = 4 << 10
	// queueBytes and queueCommands bound a transaction before EXEC: the bytes of arguments, including 1 to 3 bytes for
	// the length of each, and the number of commands.
	queueBytes, queueCommands = 256 << 10, 16 << 10
	// flushAt is how many bytes of answers are gathered before they are written.
	flushAt = 64 << 10
	// gathered is how many takes are decided together.
	gathered = 128

	// Before a client has sent its password, it may send little more than that.
	strangersCommand   = smallBuffer
	strangersArguments = 10

	// lineMax is the longest line that announces a number: more digits than any number in range has.
	lineMax = 32
	// nameMax is the longest name of a connection or of a client library, in bytes.
	nameMax = 128
	// wrongMost is how many wrong passwords end a connection.
	wrongMost = 10
)

// Timeouts. A client may wait between commands for as long as it likes, or Settings.IdleTimeout.
const (
	// commandTimeout is how long the rest of a command, a TLS handshake, or the password of a new client may take.
	commandTimeout = 10 * time.Second
	// transactionTimeout is how long a client may send nothing in a transaction.
	transactionTimeout = time.Minute
	// writeTimeout is how long a client may accept no answers while some wait.
	writeTimeout = 10 * time.Second
)

// bounds are the bounds of a client.
type bounds struct{ command, arguments int }

var (
	strangersBounds = bounds{strangersCommand, strangersArguments}
	clientsBounds   = bounds{maxCommand, maxArguments}
)
