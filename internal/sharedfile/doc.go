// Package sharedfile manages the file of a table that several processes of one machine have mapped. It manages the
// file's header, the attached processes, and their common time. It does not know the content of the table: see
// shard.Map.
//
// # The file
//
//	page 0    constant since the file was made, with a checksum: the magic, a word that shows the byte order, the
//	          version of this layout, the file's length, the secret of the hash, and the fields by which processes
//	          must agree, as text
//	page 1    the boot to which the clock belongs, where the timeline starts, and a checksum of both
//	page 2-9  1,024 seats, one for each attached process: how often each was taken, by which process last, and when
//	page 10-  the table
//
// A file is made without a name, allocated completely, and filled. Only then it gets its name. This has three effects.
// No process maps an incomplete file. A write to a page never fails because the disk is full. No file is left if the
// maker is killed. (On a file system without nameless files, the file has a temporary name and is renamed.) Only the
// file's user can access it (0600), because a program that reads the secret can find keys with equal hashes.
//
// One process makes the file. Meanwhile it has the lock of a lock file (.NAME.lock), and afterwards it removes the lock
// file. Other processes that start at this time wait for the lock. So many processes that start at once need only the
// space of one file. The folder, and all folders above it, must belong to the user or to root.
//
// # Who is attached
//
// An attached process has a seat: its open file description has a lock on a byte behind the end of the file. The kernel
// releases the lock when the process ends, in whatever way. So no process has to guess from a process number whether
// another process is alive. Each attachment has a number, which is the number of the claimant in package shard. It
// consists of the number of the seat and of how often the seat was taken, and is never used again. Any number of
// processes may attach at once. A process that stops while it attaches does not block other processes.
//
// # The time
//
// All processes use CLOCK_MONOTONIC, which is the same on the whole machine. The common time of the processes is the
// timeline. The file says how far the timeline is ahead of this clock. After a boot, this offset is no longer valid, so
// the file also has the kernel's boot id. The first process that attaches after a boot starts the timeline again, at
// the wall clock's time. If the table's watermark is later, the timeline starts at the watermark. So time never goes
// back, and no bucket fills sooner than it would according to the wall clock. A process that starts a timeline has the
// lock on another byte behind the end of the file, so only one process does so at a time. While other processes are
// attached, no process starts a timeline. If the page of the clock is damaged meanwhile, a process that attaches gets
// an error until an attached process has rewritten the page ([File.Check]).
package sharedfile

// A Field is a setting that must be the same in all processes of a file.
type Field struct{ Name, Value string }

// A Spec has a process's requirements for a file.
type Spec struct {
	Fields []Field
	Bytes  uint64 // of the table
	// Start is the time at which the timeline of a new table starts, in nanoseconds since 1970. After a boot, the
	// timeline continues at Start, or at the table's watermark if the watermark is later.
	Start int64
	Begin func(memory []byte) error          // makes a table in zeroed memory
	Mark  func(memory []byte) (int64, error) // returns the watermark of the table
	Boot  func(memory []byte) error          // removes what a boot has ended; no other process is attached; may be nil
	// Settle removes what dead processes have left. A process calls Settle when it attaches. The function isAlone
	// reports whether no other process is attached.
	Settle func(memory []byte, isAlone func() bool) error
	// Secret is the secret for the hashes of keys in a new file, or nil for a random one.
	Secret *Secret
}

// LayoutVersion is the version of the layout that this program writes and reads.
const LayoutVersion = layoutVersion

// HeaderBytes is the length of the header. The table follows it.
const HeaderBytes = headerBytes

// An Attachment describes a process that has a seat.
type Attachment struct {
	Seat  int
	PID   uint64 // as the process sees it: outside its container, the number may mean nothing
	Since int64  // on the timeline
}
