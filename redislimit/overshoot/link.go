package overshoot

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A link is the connection of one node to the server. Data that is sent while the link is cut arrives afterwards.
type link struct {
	listener net.Listener
	target   string
	cut      atomic.Bool

	mu       sync.Mutex
	isClosed bool
	conns    []net.Conn
}

func newLink(target string) (*link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &link{listener: listener, target: target}
	go l.accept()
	return l, nil
}

func (l *link) accept() {
	for {
		in, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		out, err := net.Dial("tcp", l.target)
		if err != nil {
			_ = in.Close()
			continue
		}
		if !l.track(in, out) {
			return
		}
		go l.carry(in, out)
		go l.carry(out, in)
	}
}

// track records connections, so that close can close them. If the link is already closed, track closes them itself and
// returns false.
func (l *link) track(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, conns...)
	if l.isClosed {
		l.closeConns()
	}
	return !l.isClosed
}

func (l *link) carry(from, to net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		for l.cut.Load() {
			time.Sleep(time.Millisecond)
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (l *link) close() {
	l.cut.Store(false)
	_ = l.listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isClosed = true
	l.closeConns()
}

func (l *link) closeConns() {
	for _, conn := range l.conns {
		_ = conn.Close()
	}
}

func (s Scenario) disturb(ctx context.Context, start time.Time, links []*link) {
	set := func(cut bool, links []*link) {
		for _, l := range links {
			l.cut.Store(cut)
		}
	}
	wait := func(until time.Duration) bool {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(time.Until(start.Add(until))):
			return true
		}
	}
	defer set(false, links)
	if s.CutOff > 0 {
		if wait(s.Time / 4) {
			set(true, links[:s.CutOff])
			wait(s.Time * 3 / 4)
		}
		return
	}
	for at := s.StallEvery; s.Stall > 0 && at < s.Time && wait(at); at += s.StallEvery {
		set(true, links)
		wait(at + s.Stall)
		set(false, links)
	}
}
