package resp

import "time"

const (
	// maxCommand is the most bytes in a command. So it also bounds the length of a key.
	maxCommand = 64 << 10
	// maxArguments is the most arguments in a command, including its name.
	maxArguments = 1024
	// smallBuffer is the size of a connection's buffer while the connection waits for a command.
	smallBuffer = 4 << 10
	// queueBytes and queueCommands bound a transaction before EXEC. queueCommands bounds the number of its commands.
	// queueBytes bounds the bytes of its arguments and of their lengths. A length takes 1 to 3 bytes.
	queueBytes, queueCommands = 256 << 10, 16 << 10
	// flushBytes is how many bytes of answers are collected before they are written.
	flushBytes = 64 << 10
	// maxTakes is the most takes that are decided together.
	maxTakes = 128

	// These are the bounds before a client has sent its password.
	maxCommandBeforeAuth   = smallBuffer
	maxArgumentsBeforeAuth = 10

	// maxNumberLine bounds the length of a line that announces a number. Every number in range has fewer digits.
	maxNumberLine = 32
	// maxClientName is the most bytes in the name of a connection or of a client library.
	maxClientName = 128
	// maxWrongPasswords is the number of wrong passwords after which a connection is ended.
	maxWrongPasswords = 10
)

// These are the timeouts. The wait between two commands is bounded only by Settings.IdleTimeout.
const (
	// commandTimeout bounds the time for the rest of a command, for a TLS handshake, and for the password of a new
	// client.
	commandTimeout = 10 * time.Second
	// transactionTimeout is how long a client may be silent within a transaction.
	transactionTimeout = time.Minute
	// writeTimeout is how long a client may stop reading while answers wait for it.
	writeTimeout = 10 * time.Second
)

type bounds struct{ command, arguments int }

var (
	boundsBeforeAuth = bounds{maxCommandBeforeAuth, maxArgumentsBeforeAuth}
	boundsAfterAuth  = bounds{maxCommand, maxArguments}
)
