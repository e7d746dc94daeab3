package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/weir-go/weir/engine"
)

// asOwner calls the function do. If root restores or converts a table of another user, do has the rights of that user.
// So the new files belong to the user, and nothing in the user's folder, such as a link, can mislead root. The
// parameter of do is the path of the copy to restore from, which the user can read.
func (c *tableCommand) asOwner(do func(restore string) error) (err error) {
	if os.Geteuid() != 0 || c.Copy != "" {
		return do(c.Restore)
	}
	info, err := os.Stat(c.File)
	if c.Restore != "" && errors.Is(err, fs.ErrNotExist) {
		info, err = os.Stat(filepath.Dir(c.File))
	}
	if err != nil {
		return do(c.Restore) // do says what is wrong
	}
	owner := info.Sys().(*syscall.Stat_t)
	if owner.Uid == 0 {
		return do(c.Restore)
	}
	uid, gid := int(owner.Uid), int(owner.Gid)
	restore := ""
	if c.Restore != "" {
		folder, err := os.MkdirTemp("", "weir-restore-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(folder)
		restore = filepath.Join(folder, filepath.Base(c.Restore))
		if err := errors.Join(engine.CopyShared(c.Restore, restore), os.Chmod(folder, 0o711), os.Chown(restore, uid, gid)); err != nil {
			return err
		}
	}
	groups, err := syscall.Getgroups()
	if err != nil {
		return err
	}
	if err := errors.Join(syscall.Setgroups([]int{gid}), syscall.Setegid(gid), syscall.Seteuid(uid)); err != nil {
		return fmt.Errorf("the rights of user %d, to whom %s belongs: %w", uid, c.File, err)
	}
	defer func() {
		err = errors.Join(err, syscall.Seteuid(0), syscall.Setegid(os.Getgid()), syscall.Setgroups(groups))
	}()
	return do(restore)
}
