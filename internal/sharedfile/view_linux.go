package sharedfile

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A View is a file as it is seen from outside: mapped to be read only, and without a seat. Nothing is written, and
// nobody waits for it.
type View struct {
	fd     int
	mapped []byte
	fields []Field
	secret Secret
}

// Look opens the file at path as it is seen from outside. bytes returns how long the table is of which the header has
// these fields. Root may look at anybody's file. The error says what is wrong with the file. It does not name the path.
func Look(path string, bytes func(fields []Field) (uint64, error)) (v *View, err error) {
	root := os.Geteuid() == 0
	fd, err := openFile(path, unix.O_RDONLY, root)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = unix.Close(fd) // what it is closed for is reported
		}
	}()
	page, size, err := readPage(fd, root)
	if err != nil {
		return nil, err
	}
	fields, secret, err := readHeader(page, size)
	if err != nil {
		return nil, err
	}
	table, err := bytes(fields)
	if err != nil {
		return nil, err
	}
	if size != headerBytes+table || size > min(MaxBytes, math.MaxInt) {
		return nil, fmt.Errorf("length: the file has %d bytes, a table of its numbers has %d", size, headerBytes+table)
	}
	mapped, err := unix.Mmap(fd, 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", size, err)
	}
	return &View{fd, mapped, fields, secret}, nil
}

// Close gives the file up. Nobody may use its memory any more.
func (v *View) Close() error { return release(v.fd, v.mapped) }

// Fields returns what the processes of the file agree on.
func (v *View) Fields() []Field { return v.fields }

// Secret returns what the keys of the table are hashed with.
func (v *View) Secret() Secret { return v.secret }

// Bytes returns the length of the file.
func (v *View) Bytes() uint64 { return uint64(len(v.mapped)) }

// Memory returns the memory of the table. It can be read only, and by [View.Read].
func (v *View) Memory() []byte { return v.mapped[headerBytes:] }

// Made returns when the file was made, or the zero time if the file system does not tell.
func (v *View) Made() time.Time {
	var info unix.Statx_t
	err := unix.Statx(v.fd, "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &info)
	if err != nil || info.Mask&unix.STATX_BTIME == 0 {
		return time.Time{}
	}
	return time.Unix(info.Btime.Sec, int64(info.Btime.Nsec))
}

// Read calls a function that may read the memory. If the file was made shorter, so that the memory is not there any
// more, that is an error.
func (v *View) Read(read func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch fault := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }:
			if first := uintptr(unsafe.Pointer(&v.mapped[0])); fault.Addr()-first >= uintptr(len(v.mapped)) {
				panic(fault)
			}
			err = errors.New("the file was made shorter while it was read")
		default:
			panic(fault)
		}
	}()
	read()
	return nil
}

// Now returns the time on the timeline, and whether it is known: it is not when no process has attached since the
// machine was booted.
func (v *View) Now() (now int64, known bool) {
	boot, err := bootID()
	c := clockOf(v.mapped)
	if err != nil || !c.isOf(boot) {
		return 0, false
	}
	offset, err := namespaceOffset()
	if err == nil {
		now, err = monotonic()
	}
	return c.ahead.Load() - offset + now, err == nil
}

// Attached returns the attachments that have not ended. A process that has its seat for this moment may be told by the
// number of the one before it.
func (v *View) Attached() (all []Attachment, err error) {
	for i := range v.seats() {
		held, err := held(v.fd, seatAt(uint64(i)), 1)
		if err != nil {
			return nil, fmt.Errorf("look for processes: %w", err)
		}
		if seat := &v.seats()[i]; held {
			all = append(all, Attachment{i, seat.pid.Load(), seat.since.Load()})
		}
	}
	return all, nil
}

func (v *View) seats() *[seats]seat { return (*[seats]seat)(unsafe.Pointer(&v.mapped[seatsAt])) }

// Claimant returns a number that no attachment has: seats are counted from 1 on.
func (v *View) Claimant() uint64 { return 1 }

// Dead reports whether an attachment has ended. If the system cannot tell, it is alive.
func (v *View) Dead(claimant uint64) bool {
	i := claimant % seats
	if v.seats()[i].taken.Load() != claimant>>seatBits {
		return true // the seat was given back, and taken by another
	}
	held, err := held(v.fd, seatAt(i), 1)
	return err == nil && !held
}
