// Package sharedfile manages the file of a table that several processes of one machine have mapped: its header, the
// attached processes, and their common time. It does not know the content of the table: see shard.Map.
//
// # The file
//
//	page 0    constant since the file was made, with a checksum: the magic, a word that shows the byte order, the
//	          version of this layout, the file's length, the secret of the hash, and the fields by which processes
//	          must agree, as text
//	page 1    the boot to which the clock belongs, where the timeline starts, and a checksum of both
//	page 2-9  1,024 seats, one for each attached process: how often each was taken, by which process, and when
//	page 10-  the table
//
// A file is made without a name, allocated completely, filled, and then given its name. So no process maps an
// incomplete file, no page is missing when it is written, and nothing is left if the maker is killed. (On a file system
// without nameless files, the file has a temporary name and is renamed.) Only the file's user can access it (0600),
// because a program that reads the secret can find keys with equal hashes.
//
// One process makes the file, under the lock of another file (.NAME.lock), which is removed afterwards. The others
// wait. So if many processes start at once, they need the space of one file. The folder, and all folders above it, must
// belong to the user or to root.
//
// # Who is attached
//
// An attached process has a seat: a lock on a byte behind the end of the file, by its open file description. The kernel
// releases the lock when the process ends, in whatever way. So it is never guessed from a process number whether a
// process is alive. The number of the seat, and how often it was taken, make the claimant's number, which is never used
// again. Any number of processes may attach at once, and a process that stops while it attaches blocks no other.
//
// # The time
//
// All processes use CLOCK_MONOTONIC, which is the same on the whole machine, and the file says how far the timeline is
// ahead of it. The kernel's boot id shows when that is no longer valid. The first process that attaches after a boot
// continues the timeline at the wall clock's time, or at the table's watermark if that is later. So time never goes
// back, and no bucket fills sooner than by the wall clock. One process at a time does this, under another such lock.
// While other processes are attached, no timeline is started. If the page of the clock is damaged then, a process that
// attaches gets an error until one of the others has rewritten the page ([File.Check]).
package sharedfile

// A Field is a setting that must be the same in all processes of a file.
type Field struct{ Name, Value string }

// A Spec has a process's requirements for a file.
type Spec struct {
	Fields []Field
	Bytes  uint64 // of the table
	// Start is the time at which a new table starts, in nanoseconds since 1970. After a boot, time continues from it.
	Start int64
	Begin func(memory []byte) error          // makes a table in zeroed memory
	Mark  func(memory []byte) (int64, error) // its watermark
	Boot  func(memory []byte) error          // forgets what a boot ends, while no process has the file; may be nil
	// Settle removes what dead processes have left. A process calls it when it attaches. alone reports whether no other
	// process is attached.
	Settle func(memory []byte, alone func() bool) error
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
	PID   uint64 // of the process, as it sees itself: in a container the number may mean nothing outside
	Since int64  // on the timeline
}
