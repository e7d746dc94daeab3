package sharedfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Protected checks that no other user can remove a folder, remove a file in it, or redirect the path to another folder.
// Otherwise a later process could start with full buckets. So all folders and links that the path names must belong to
// the user of this process or to root. A folder to which everyone can write must have the sticky bit.
func Protected(folder string) error {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return nil // making the file will report what is wrong
	}
	dir, elements, links := "/", append([]string{"."}, strings.Split(absolute, "/")...), 0
	for ; len(elements) > 0; elements = elements[1:] {
		next := filepath.Join(dir, elements[0])
		var info unix.Stat_t
		if unix.Lstat(next, &info) != nil {
			return nil // making the file will report this, too
		}
		if info.Mode&unix.S_IFMT != unix.S_IFLNK {
			if err := checkFolder(next, &info); err != nil {
				return err
			}
			dir = next
			continue
		}
		if user := os.Geteuid(); info.Uid != 0 && int(info.Uid) != user {
			return fmt.Errorf("owner: the link %s belongs to user %d, who can redirect it to another folder, and so make every "+
				"bucket full: want a link of user %d or of root", next, info.Uid, user)
		}
		target, err := os.Readlink(next)
		if links++; err != nil || links > 40 { // the kernel does not follow more than 40, either
			return nil
		}
		if filepath.IsAbs(target) {
			dir = "/"
		}
		elements = append(append([]string{"."}, strings.Split(target, "/")...), elements[1:]...)
	}
	return nil
}

// checkFolder checks the owner and the mode of one folder.
func checkFolder(folder string, info *unix.Stat_t) error {
	if user := os.Geteuid(); info.Uid != 0 && int(info.Uid) != user {
		return fmt.Errorf("owner: the folder %s belongs to user %d, who can remove what is in it, and so make every bucket full: "+
			"want a folder of user %d or of root, and all above it, too (mkdir -m 700)", folder, info.Uid, user)
	}
	if mode := info.Mode & 0o7777; mode&unix.S_IWOTH != 0 && mode&unix.S_ISVTX == 0 {
		return fmt.Errorf("mode: everybody can remove files from the folder %s, which has %04o: take that away (chmod o-w %s)",
			folder, mode, folder)
	}
	return nil
}

// checkOwnerOf checks that a file belongs to the user of this process. If there is no file, the check succeeds. In a
// folder for everyone, such as /dev/shm, other users can take a name first.
func checkOwnerOf(path, name string) error {
	var info unix.Stat_t
	if unix.Lstat(path, &info) != nil {
		return nil // opening it will report what is wrong
	}
	return checkOwner(info.Uid, name)
}

func checkOwner(user uint32, name string) error {
	if int(user) == os.Geteuid() {
		return nil
	}
	return fmt.Errorf("owner: %s belongs to user %d, and this process is of user %d: take another name, or a folder that "+
		"belongs to this user alone (mkdir -m 700), or have the file removed", name, user, os.Geteuid())
}
