package resp

import "time"

const (
	// maxCommand is the most bytes in a command. So it also bounds the length of a key.
	maxCommand = 64 << 10
	// maxArguments is the most arguments in a command, including its name.
	maxArguments = 1024
	// smallBuffer is the size of a connection's buffer while the connection waits for a command.
	smallBuffer = 4 << 10
	// queueBytes and queueCommands bound a transaction before EXEC: the bytes of arguments, with 1 to 3 bytes for the
	// length of each, and the number of commands.
	queueBytes, queueCommands = 256 << 10, 16 << 10
	// flushAt is how many bytes of answers are gathered before they are written.
	flushAt = 64 << 10
	// gathered is how many takes are decided together.
	gathered = 128

	// These are the bounds until a client has sent its password.
	strangersCommand   = smallBuffer
	strangersArguments = 10

	// lineMax bounds a line that announces a number. Every number in range has fewer digits.
	lineMax = 32
	// nameMax is the most bytes in the name of a connection or of a client library.
	nameMax = 128
	// wrongMost is the number of wrong passwords after which a connection ends.
	wrongMost = 10
)

// These are the timeouts. Between commands, only Settings.IdleTimeout bounds the wait.
const (
	// commandTimeout is how long the rest of a command, a TLS handshake, or the password of a new client may take.
	commandTimeout = 10 * time.Second
	// transactionTimeout is how long a client may send nothing within a transaction.
	transactionTimeout = time.Minute
	// writeTimeout is how long a client may read nothing while answers wait for it.
	writeTimeout = 10 * time.Second
)

type bounds struct{ command, arguments int }

var (
	strangersBounds = bounds{strangersCommand, strangersArguments}
	clientsBounds   = bounds{maxCommand, maxArguments}
)
