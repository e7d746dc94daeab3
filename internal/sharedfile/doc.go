// Package sharedfile keeps the file of a table that several processes of one machine have mapped: its header, who is
// attached, and the time that all of them count from. What the table does with the rest is no business of this
// package: see shard.Map.
//
// # The file
//
//	page 0    constant since the file was made, with a checksum: the magic, a word that tells the order of bytes, the
//	          version of this layout, the file's length, the secret of the hash, and the fields by which processes
//	          must agree, as text
//	page 1    the boot that the clock belongs to, where the timeline begins, and a checksum of both
//	page 2-9  1,024 seats: how often each was taken, by which process, and when
//	page 10-  the table
//
// A file is made without a name, allocated as a whole, filled, and given its name. So no process maps half of one, no
// page is missing when it is written to, and nothing is left of a file whose maker is killed. (A file system without
// such files has one of another name meanwhile, which is renamed.) The file belongs to its user alone (0600), because
// who reads the secret can find keys that meet.
//
// One process makes the file, under the lock of another one (.NAME.lock) that is removed afterwards. The others wait,
// so that many which start at once need the room of one file. The folder, and all above it, belong to the user or to
// root.
//
// # Who is attached
//
// An attached process holds a seat: a lock on a byte behind the end of the file, by the open file description. The
// kernel gives it back when the process ends, however it ends. So whether a process is alive is not guessed from its
// number. The seat and how often it was taken make the claimant's number, which is never used again. Any number of
// processes may attach at once, so one that is stopped meanwhile is in nobody's way.
//
// # The time
//
// All processes count by CLOCK_MONOTONIC, which is the machine's, and the file says how far the timeline is ahead of
// it. That ends with a boot, which the kernel names. Who attaches first after one lets the timeline go on at the wall
// clock's time, or at the table's mark if that is later: so time never goes back, and no bucket fills sooner than the
// wall clock says. One at a time does so, by another such lock. While others are attached no timeline is begun: if the
// page of the clock is damaged then, who comes is refused until one of them has written it again ([File.Check]).
package sharedfile

// A Field is something by which all processes of a file must agree.
type Field struct{ Name, Value string }

// A Spec is what a process wants of a file.
type Spec struct {
	Fields []Field
	Bytes  uint64 // of the table
	// Start is when a table begins that is made now, in nanoseconds since 1970, and from when on time counts after a
	// boot.
	Start int64
	Begin func(memory []byte) error          // makes zeros a table
	Mark  func(memory []byte) (int64, error) // its watermark
	Boot  func(memory []byte) error          // forgets what no boot outlives, while nobody has the file; nil: nothing
	// Settle forgets what the dead have left. Who attaches calls it. alone reports whether nobody else is attached.
	Settle func(memory []byte, alone func() bool) error
	// Secret is what the keys are hashed with of a file that is made, or nil for a random one.
	Secret *Secret
}

// LayoutVersion is the version of the layout that this program makes and reads.
const LayoutVersion = layoutVersion

// HeaderBytes is how long the header is: behind it is the table.
const HeaderBytes = headerBytes

// An Attachment is that of a process that has a seat.
type Attachment struct {
	Seat  int
	PID   uint64 // of the process, as it sees itself: in a container the number may mean nothing outside
	Since int64  // on the timeline
}
