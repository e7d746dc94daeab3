package atomicbucket

import "fmt"

// Widths of the fields of a [State].
const (
	PayloadBits = 54
	VersionBits = 7
)

const (
	payloadMask  = 1<<PayloadBits - 1
	versionShift = PayloadBits
	versionMask  = 1<<VersionBits - 1
	tagShift     = PayloadBits + VersionBits
)

// A Tag says what a slot is and which goroutine may write to it.
type Tag uint8

const (
	// NeverUsed is the tag of the word 0: the slot was not used since the start. No transition leads back to this tag,
	// so a search may stop at such a slot.
	NeverUsed Tag = iota
	// Free: the slot has no owner and its key word means nothing.
	Free
	// Claimed: one goroutine owns the slot and is writing the key word. No other goroutine writes the key word or the
	// state word, and none waits for the owner.
	Claimed
	// Tentative: the key word is valid, but it is undecided whether this is the key's only record.
	Tentative
	// Live: the slot belongs to its key; the payload is the key's bucket.
	Live
	// Second: the slot is live, too. The tags Live and Second distinguish the payloads of the plans before and after a
	// change of the table's plan.
	Second
)

// String returns the name that the protocol uses for the tag.
func (t Tag) String() string {
	switch t {
	case NeverUsed:
		return "0"
	case Free:
		return "FREE"
	case Claimed:
		return "CLAIM"
	case Tentative:
		return "TENT"
	case Live:
		return "LIVE"
	case Second:
		return "LIVE'"
	}
	return fmt.Sprintf("Tag(%d)", uint8(t))
}

// A State is the value of a state word: tag, version and payload. It is a plain number; [Word] is the place in memory.
type State uint64

// NewState packs the three fields. Version and payload wrap around: bits above their widths are dropped.
func NewState(t Tag, version, payload uint64) State {
	return State(uint64(t)<<tagShift | version&versionMask<<versionShift | payload&payloadMask)
}

// Tag returns the tag.
func (s State) Tag() Tag { return Tag(s >> tagShift) }

// Version returns the version, 0 to 127: see the package comment for what changes it.
func (s State) Version() uint64 { return uint64(s>>versionShift) & versionMask }

// Payload returns the bucket.
func (s State) Payload() uint64 { return uint64(s) & payloadMask }

// IsLive reports whether the tag is [Live] or [Second]. These are the highest tags, so one comparison is enough.
func (s State) IsLive() bool { return s >= State(Live)<<tagShift }

// String returns the tag, version and payload, for the messages of tests.
func (s State) String() string {
	return fmt.Sprintf("%v v%d %#x", s.Tag(), s.Version(), s.Payload())
}

// with returns the state s with another tag and payload, in the same tenure.
func (s State) with(t Tag, payload uint64) State {
	return State(uint64(t)<<tagShift | uint64(s)&(versionMask<<versionShift) | payload&payloadMask)
}

func (s State) moved(payload uint64) State { return s&^payloadMask | State(payload&payloadMask) }
