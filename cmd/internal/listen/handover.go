package listen

import (
	"io/fs"
	"os"
)

// Handed has duplicates of the descriptors of all sockets, for another process, and their descriptions.
type Handed struct {
	sockets []handedSocket // nil if systemd has passed the descriptors
	files   []*os.File
}

type handedSocket struct {
	Role    Role        `json:"role"`
	Address string      `json:"address"` // as in the rule file
	Mode    fs.FileMode `json:"mode"`
	Unlink  bool        `json:"unlink"` // the file of a Unix socket is removed when the socket is closed
}

// A Successor is a process that will replace this one.
type Successor struct {
	*os.Process
	// Outcome waits until the new process reports or ends. If the new process serves, Outcome returns [Serving]. If it
	// does not serve and has undone its changes, Outcome returns its reason. Otherwise Outcome returns an error.
	Outcome func() (string, error)
}

// HandOver duplicates the descriptors of the sockets. The caller must close the result.
func (s *Sockets) HandOver() (*Handed, error) {
	h := &Handed{}
	for _, socket := range s.open {
		local, isUnix := socket.streamListener.(*localListener)
		if isUnix && local.FileIsGone() {
			s.config.Log.Warn("upgrade: the file of a Unix socket is gone, so no one can connect: the next process makes the "+
				"socket anew", "listen", socket.address)
			continue
		}
		file, err := duplicate(socket.streamListener)
		if err != nil {
			h.Close()
			return nil, err
		}
		h.sockets = append(h.sockets, handedSocket{
			Role: socket.server.endpoint.Role, Address: socket.address, Mode: socket.mode,
			Unlink: isUnix && local.UnlinkOnClose(),
		})
		h.files = append(h.files, file)
	}
	return h, nil
}

// Close closes the descriptors. The sockets stay open.
func (h *Handed) Close() {
	for _, f := range h.files {
		_ = f.Close() // the socket itself stays open
	}
}

// Yield leaves the files of Unix sockets to another process. This process no longer removes them.
func (s *Sockets) Yield() {
	for _, socket := range s.open {
		if local, ok := socket.streamListener.(*localListener); ok {
			local.SetUnlinkOnClose(false)
		}
	}
}
