package reference

import (
	"fmt"
	"math/rand/v2"
	"strings"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// A source makes random rules and requests that both services accept. The shortest unit is an hour, so that no window
// ends during a run.
type source struct {
	*rand.Rand
	negative int // percent of the descriptors that give hits back
}

var domains = []string{"d0", "d1", "d2", "d3", "d4", "d5"}

func (s source) often(percent int) bool { return s.IntN(100) < percent }

func (s source) of(all ...string) string { return all[s.IntN(len(all))] }

func (s source) rules() map[string]string {
	files := map[string]string{}
	for _, domain := range domains {
		var b strings.Builder
		fmt.Fprintf(&b, "domain: %s\ndescriptors:\n", domain)
		s.descriptors(&b, "  ", 12, 2)
		files[domain+".yaml"] = b.String()
	}
	return files
}

func (s source) descriptors(b *strings.Builder, indent string, most, depth int) {
	seen := map[string]bool{}
	for range 1 + s.IntN(most) {
		key, value := s.of("k0", "k1", "k2", "k3", "k*"), s.of("", "", "v0", "v1", "v2", "v*", "*1", "v*x")
		if seen[key+"_"+value] {
			continue
		}
		seen[key+"_"+value] = true
		fmt.Fprintf(b, "%s- key: %q\n", indent, key)
		inner := indent + "  "
		if value != "" {
			fmt.Fprintf(b, "%svalue: %q\n", inner, value)
		}
		for _, flag := range []string{"shadow_mode", "quota_mode", "detailed_metric", "value_to_metric"} {
			if s.often(10) {
				fmt.Fprintf(b, "%s%s: true\n", inner, flag)
			}
		}
		if strings.Contains(key+value, "*") && s.often(40) {
			fmt.Fprintf(b, "%sshare_threshold: true\n", inner)
		}
		if s.often(20) {
			fmt.Fprintf(b, "%smetadata: {%s: %d, of: {%s: true}}\n", inner, s.of("a", "b"), s.IntN(9), s.of("c", "d"))
		}
		if s.often(80) {
			fmt.Fprintf(b, "%srate_limit: {%s}\n", inner, s.limit())
		}
		if depth > 1 && s.often(40) {
			fmt.Fprintf(b, "%sdescriptors:\n", inner)
			s.descriptors(b, inner+"  ", 4, depth-1)
		}
	}
}

func (s source) limit() string {
	if s.often(6) {
		return "unlimited: true"
	}
	text := fmt.Sprintf("requests_per_unit: %d, unit: %s", s.IntN(13), s.of("hour", "day", "week", "month", "year"))
	if s.often(40) {
		n := s.IntN(4)
		text += fmt.Sprintf(", name: n%d", n)
		if s.often(30) {
			text += fmt.Sprintf(", replaces: [{name: n%d}]", (n+1+s.IntN(3))%4)
		}
	}
	return text
}

func (s source) request() *rlsv3.RateLimitRequest {
	r := &rlsv3.RateLimitRequest{Domain: s.of(domains...)}
	if s.often(4) {
		r.Domain = s.of("", "unknown")
	}
	if s.often(40) {
		r.HitsAddend = uint32(s.IntN(4))
	}
	if s.often(1) {
		return r
	}
	for range 1 + s.IntN(3) {
		r.Descriptors = append(r.Descriptors, s.descriptor())
	}
	return r
}

func (s source) descriptor() *commonv3.RateLimitDescriptor {
	d := &commonv3.RateLimitDescriptor{}
	for range 1 + s.IntN(2) {
		d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{
			Key: s.of("k0", "k1", "k2", "k3", "k4"), Value: s.of("", "v0", "v1", "v2", "v3", "v1x", "1"),
		})
	}
	if s.often(15) {
		d.HitsAddend = wrapperspb.UInt64(uint64(s.IntN(4)))
	}
	if s.often(s.negative) {
		d.IsNegativeHits = true
	}
	if s.often(5) {
		d.Limit = &commonv3.RateLimitDescriptor_RateLimitOverride{
			RequestsPerUnit: uint32(s.IntN(6)), Unit: typev3.RateLimitUnit(3 + s.IntN(3)),
		}
	}
	return d
}
