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

// A View is a read-only view of a file. A process with a View has no seat for it and writes nothing, and no process
// waits for it.
type View struct {
	fd     int
	mapped []byte
	fields []Field
	secret Secret
}

// OpenView opens a view of the file at path. The function bytesOf returns the length of the table of a file with the
// given fields. Root may view any user's file. The error says what is wrong with the file, and does not contain the
// path.
func OpenView(path string, bytesOf func(fields []Field) (uint64, error)) (v *View, err error) {
	root := os.Geteuid() == 0
	fd, err := openFile(path, unix.O_RDONLY, root)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = unix.Close(fd) // the earlier error is reported
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
	tableBytes, err := bytesOf(fields)
	if err != nil {
		return nil, err
	}
	if size != headerBytes+tableBytes || size > min(MaxBytes, math.MaxInt) {
		return nil, fmt.Errorf("length: the file has %d bytes, a table of its numbers has %d", size, headerBytes+tableBytes)
	}
	mapped, err := unix.Mmap(fd, 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", size, err)
	}
	return &View{fd, mapped, fields, secret}, nil
}

// Close unmaps the file. Its memory must not be used afterwards.
func (v *View) Close() error { return release(v.fd, v.mapped) }

// Fields returns the settings that all processes of the file share.
func (v *View) Fields() []Field { return v.fields }

// Secret returns the secret for the hashes of the table's keys.
func (v *View) Secret() Secret { return v.secret }

// Bytes returns the length of the file.
func (v *View) Bytes() uint64 { return uint64(len(v.mapped)) }

// Memory returns the memory of the table. The memory is read-only, and must be read within [View.Read].
func (v *View) Memory() []byte { return v.mapped[headerBytes:] }

// Made returns when the file was made. If the file system does not record this, Made returns the zero time.
func (v *View) Made() time.Time {
	var info unix.Statx_t
	err := unix.Statx(v.fd, "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &info)
	if err != nil || info.Mask&unix.STATX_BTIME == 0 {
		return time.Time{}
	}
	return time.Unix(info.Btime.Sec, int64(info.Btime.Nsec))
}

// Read calls a function that may read the memory. If the file was truncated, so that the memory no longer exists, Read
// returns an error.
func (v *View) Read(read func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch fault := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }:
			if first := uintptr(unsafe.Pointer(&v.mapped[0])); fault.Addr()-first >= uintptr(len(v.mapped)) {
				panic(fault)
			}
			err = errors.New("the file was truncated while it was read")
		default:
			panic(fault)
		}
	}()
	read()
	return nil
}

// Now returns the time on the timeline. If no process has attached since the machine was booted, ok is false.
func (v *View) Now() (now int64, ok bool) {
	boot, err := bootID()
	c := clockOf(v.mapped)
	if err != nil || !c.isValidFor(boot) {
		return 0, false
	}
	nsOffset, err := namespaceOffset()
	if err == nil {
		now, err = monotonic()
	}
	return c.offset.Load() - nsOffset + now, err == nil
}

// Attached returns the attachments that have not ended. If a process is attaching at this moment, its entry may still
// have the process number of the seat's previous attachment.
func (v *View) Attached() (attachments []Attachment, err error) {
	for i := range v.seats() {
		locked, err := isLocked(v.fd, seatAt(uint64(i)), 1)
		if err != nil {
			return nil, fmt.Errorf("look for processes: %w", err)
		}
		if seat := &v.seats()[i]; locked {
			attachments = append(attachments, Attachment{i, seat.pid.Load(), seat.since.Load()})
		}
	}
	return attachments, nil
}

func (v *View) seats() *[seats]seat { return (*[seats]seat)(unsafe.Pointer(&v.mapped[seatsAt])) }

// Claimant returns a number that no attachment has. The numbers of attachments are greater, because a seat counts from
// 1 on how often it was taken.
func (v *View) Claimant() uint64 { return 1 }

// Dead reports whether an attachment has ended. If the system does not report that, the attachment counts as alive.
func (v *View) Dead(claimant uint64) bool {
	i := claimant % seats
	if v.seats()[i].count.Load() != claimant>>seatBits {
		return true // the seat was released, and taken by another attachment
	}
	locked, err := isLocked(v.fd, seatAt(i), 1)
	return err == nil && !locked
}
