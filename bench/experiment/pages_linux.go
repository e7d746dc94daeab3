package experiment

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// smallPages makes the system use no huge pages for this process from now on.
func smallPages() error {
	if err := unix.Prctl(unix.PR_SET_THP_DISABLE, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("turn huge pages off: %w", err)
	}
	return nil
}
