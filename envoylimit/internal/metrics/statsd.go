package metrics

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/envoylimit"
)

// maxPacket is how many bytes a packet to statsd holds, so that it fits an Ethernet frame.
const maxPacket = 1400

// A Statsd sends what the counters have grown by.
type Statsd struct {
	To    io.Writer         // each Write is a packet
	Every time.Duration     // between two flushes
	Tags  map[string]string // behind each name, as the reference's library writes them
	last  map[string]uint64
}

// Run sends until the context ends, and then once more. An error of the network loses the packet, as UDP may.
func (s *Statsd) Run(ctx context.Context, service *envoylimit.Service) {
	ticker := time.NewTicker(s.Every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			s.flush(service.Counters())
			return
		case <-ticker.C:
			s.flush(service.Counters())
		}
	}
}

func (s *Statsd) flush(counters []envoylimit.Counter) {
	if s.last == nil {
		s.last = map[string]uint64{}
	}
	tags := s.tags()
	var packet bytes.Buffer
	for _, c := range counters {
		grown := c.Value - s.last[c.Name]
		if grown == 0 {
			continue
		}
		s.last[c.Name] = c.Value
		line := unreserved.Replace(c.Name) + tags + ":" + strconv.FormatUint(grown, 10) + "|c\n"
		if packet.Len() > 0 && packet.Len()+len(line) > maxPacket {
			_, _ = s.To.Write(packet.Bytes())
			packet.Reset()
		}
		packet.WriteString(line)
	}
	if packet.Len() > 0 {
		_, _ = s.To.Write(packet.Bytes())
	}
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
