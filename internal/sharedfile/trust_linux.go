package sharedfile

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// protected checks that nobody else can remove what a folder has, or the folder itself: who comes later would begin
// with full buckets. So it and all folders above it belong to the user of this process, or to root, and not everybody
// can write to them, unless they are sticky.
func protected(folder string) error {
	whole, err := filepath.Abs(folder)
	if err == nil {
		whole, err = filepath.EvalSymlinks(whole)
	}
	if err != nil {
		return nil // making the file says what is wrong
	}
	for ; ; whole = filepath.Dir(whole) {
		var info unix.Stat_t
		if err := unix.Stat(whole, &info); err != nil {
			return fmt.Errorf("owner: whose the folder %s is cannot be told: %w", whole, err)
		}
		if user := os.Geteuid(); info.Uid != 0 && int(info.Uid) != user {
			return fmt.Errorf("owner: the folder %s belongs to user %d, who can remove what is in it, and so make every bucket full: "+
				"want a folder of user %d or of root, and all above it, too (mkdir -m 700)", whole, info.Uid, user)
		}
		if mode := info.Mode & 0o7777; mode&unix.S_IWOTH != 0 && mode&unix.S_ISVTX == 0 {
			return fmt.Errorf("mode: everybody can remove files from the folder %s, which has %04o: take that away (chmod o-w %s)",
				whole, mode, whole)
		}
		if whole == filepath.Dir(whole) {
			return nil
		}
	}
}

// ownerOf checks that a file, if there is one, belongs to the user of this process. In a folder for everybody, such as
// /dev/shm, others can take a name first.
func ownerOf(path, what string) error {
	var info unix.Stat_t
	if unix.Lstat(path, &info) != nil {
		return nil // opening it says what is wrong
	}
	return ownedBy(info.Uid, what)
}

func ownedBy(user uint32, what string) error {
	if int(user) == os.Geteuid() {
		return nil
	}
	return fmt.Errorf("owner: %s belongs to user %d, and this process is of user %d: take another name, or a folder that "+
		"belongs to this user alone (mkdir -m 700), or have the file removed", what, user, os.Geteuid())
}
