package metrics

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/cmd/internal/envoy"
)

// maxPacket is the most bytes in a packet to statsd, so that it fits an Ethernet frame.
const maxPacket = 1400

// timeout is how long statsd may take to accept a connection, or to read data.
const timeout = 5 * time.Second

// A Statsd sends the increases of counters, the values of changed gauges, and durations of calls.
type Statsd struct {
	Network, Address string
	Every            time.Duration     // the time between two flushes
	Tags             map[string]string // appended to each name, as envoyproxy/ratelimit's library does
	Failed           func(error)       // called when sending begins to fail

	lastSent   map[string]uint64
	connection net.Conn // nil: not connected
}

// Run sends the statistics at intervals until the context ends, and then once more. If a packet cannot be sent, its
// counts go with the next flush. The counts in a lost UDP packet are lost.
func (s *Statsd) Run(ctx context.Context, counters func() []envoy.Counter, times func() []Timing) {
	ticker := time.NewTicker(s.Every)
	defer ticker.Stop()
	failing := false
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
		err := s.flush(counters(), times())
		if err != nil && !failing {
			s.Failed(err)
		}
		failing = err != nil
	}
	if s.connection != nil {
		s.connection.Close()
	}
}

func (s *Statsd) flush(counters []envoy.Counter, times []Timing) error {
	if s.lastSent == nil {
		s.lastSent = map[string]uint64{}
	}
	tags := s.tags()
	p := &packet{statsd: s, counters: map[string]uint64{}}
	for _, c := range counters {
		last, found := s.lastSent[c.Name]
		name := nameReplacer.Replace(c.Name) + tags
		switch {
		case c.Gauge && (c.Value != last || !found):
			p.add(fmt.Sprintf("%s:%d|g\n", name, c.Value))
		case !c.Gauge && c.Value != last:
			p.add(fmt.Sprintf("%s:%d|c\n", name, c.Value-last))
		default:
			continue
		}
		p.counters[c.Name] = c.Value
	}
	for _, t := range times {
		suffix := "|ms\n"
		if t.Rate < 1 {
			suffix = fmt.Sprintf("|ms|@%g\n", t.Rate)
		}
		for _, value := range t.Values {
			p.add(fmt.Sprintf("%s:%.3f%s", nameReplacer.Replace(t.Name)+tags, value, suffix))
		}
	}
	p.send()
	return p.err
}

// A packet collects lines to send. After an error, it sends no more lines in this flush. Increases of counters then
// wait for the next flush, but durations are lost.
type packet struct {
	statsd   *Statsd
	text     bytes.Buffer
	counters map[string]uint64 // the counters whose increases are in the packet
	err      error
}

func (p *packet) add(line string) {
	if p.text.Len() > 0 && p.text.Len()+len(line) > maxPacket {
		p.send()
	}
	p.text.WriteString(line)
}

func (p *packet) send() {
	if p.text.Len() == 0 {
		return
	}
	if p.err == nil {
		p.err = p.statsd.write(p.text.Bytes())
	}
	if p.err == nil {
		maps.Copy(p.statsd.lastSent, p.counters)
	}
	p.text.Reset()
	clear(p.counters)
}

// write sends a packet. If that fails, it opens a new connection and tries once more, because statsd may have closed
// the old connection.
func (s *Statsd) write(packet []byte) error {
	for isNew := s.connection == nil; ; isNew = true {
		if s.connection == nil {
			connection, err := net.DialTimeout(s.Network, s.Address, timeout)
			if err != nil {
				return err
			}
			s.connection = connection
			if s.Network == "tcp" {
				go closeWithPeer(connection)
			}
		}
		err := s.connection.SetWriteDeadline(time.Now().Add(timeout))
		if err == nil {
			_, err = s.connection.Write(packet)
		}
		if err == nil {
			return nil
		}
		s.connection.Close()
		if s.connection = nil; isNew {
			return err
		}
	}
}

// closeWithPeer closes a connection when its peer has closed it. Without this, the data of the next write would be
// lost: the system reports a closed connection only after that write.
func closeWithPeer(connection net.Conn) {
	_, _ = io.Copy(io.Discard, connection)
	connection.Close()
}

// nameReplacer replaces the characters that separate the fields of a line, so that a name cannot have them.
var nameReplacer = strings.NewReplacer(":", "_", "|", "_", "\n", "_", "\r", "_")

// tags returns ".__key=value" for each tag, sorted by key. This text is appended to each name.
func (s *Statsd) tags() string {
	var parts []string
	for key, value := range s.Tags {
		parts = append(parts, ".__"+nameReplacer.Replace(key)+"="+nameReplacer.Replace(value))
	}
	slices.Sort(parts)
	return strings.Join(parts, "")
}
