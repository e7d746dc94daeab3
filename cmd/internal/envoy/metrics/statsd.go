package metrics

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/cmd/internal/envoy"
)

// maxPacket is how many bytes a packet to statsd holds, so that it fits an Ethernet frame.
const maxPacket = 1400

// patience is how long statsd may take to connect, or to read what it is sent.
const patience = 5 * time.Second

// A Statsd sends what the counters have grown by.
type Statsd struct {
	Network, Address string
	Every            time.Duration     // between two flushes
	Tags             map[string]string // behind each name, as the reference's library writes them
	Failed           func(error)       // told when sending begins to fail

	last       map[string]uint64
	connection net.Conn // nil: not connected
}

// Run sends until the context ends, and then once more. What was not sent is sent with the next flush, as far as that
// is known: a packet by UDP may be lost.
func (s *Statsd) Run(ctx context.Context, counters func() []envoy.Counter) {
	ticker := time.NewTicker(s.Every)
	defer ticker.Stop()
	failing := false
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
		err := s.flush(counters())
		if err != nil && !failing {
			s.Failed(err)
		}
		failing = err != nil
	}
	if s.connection != nil {
		s.connection.Close()
	}
}

func (s *Statsd) flush(counters []envoy.Counter) error {
	if s.last == nil {
		s.last = map[string]uint64{}
	}
	tags := s.tags()
	var packet bytes.Buffer
	pending := map[string]uint64{} // what the packet brings
	send := func() error {
		if err := s.write(packet.Bytes()); err != nil {
			return err
		}
		packet.Reset()
		maps.Copy(s.last, pending)
		clear(pending)
		return nil
	}
	for _, c := range counters {
		grown := c.Value - s.last[c.Name]
		if grown == 0 {
			continue
		}
		line := unreserved.Replace(c.Name) + tags + ":" + strconv.FormatUint(grown, 10) + "|c\n"
		if packet.Len() > 0 && packet.Len()+len(line) > maxPacket {
			if err := send(); err != nil {
				return err
			}
		}
		packet.WriteString(line)
		pending[c.Name] = c.Value
	}
	if packet.Len() == 0 {
		return nil
	}
	return send()
}

// write sends a packet. A connection that fails is opened anew, once: statsd may have closed it since the last flush.
func (s *Statsd) write(packet []byte) error {
	for fresh := s.connection == nil; ; fresh = true {
		if s.connection == nil {
			connection, err := net.DialTimeout(s.Network, s.Address, patience)
			if err != nil {
				return err
			}
			s.connection = connection
			if s.Network == "tcp" {
				go closeWithPeer(connection)
			}
		}
		err := s.connection.SetWriteDeadline(time.Now().Add(patience))
		if err == nil {
			_, err = s.connection.Write(packet)
		}
		if err == nil {
			return nil
		}
		s.connection.Close()
		if s.connection = nil; fresh {
			return err
		}
	}
}

// closeWithPeer closes a connection when its peer has: a write would otherwise be lost before the system knows.
func closeWithPeer(connection net.Conn) {
	_, _ = io.Copy(io.Discard, connection)
	connection.Close()
}

// unreserved takes from a name what parts the fields of a line.
var unreserved = strings.NewReplacer(":", "_", "|", "_", "\n", "_", "\r", "_")

// tags are what stands behind each name: ".__key=value", sorted.
func (s *Statsd) tags() string {
	var all []string
	for key, value := range s.Tags {
		all = append(all, ".__"+unreserved.Replace(key)+"="+unreserved.Replace(value))
	}
	slices.Sort(all)
	return strings.Join(all, "")
}
