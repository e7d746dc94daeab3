package config

import (
	"net/netip"
	"regexp"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
	"github.com/weir-go/weir/engine"
)

// A Document has the contents of one file or one xDS resource, before it is compared with the others.
type Document struct {
	File         string // for messages
	Domain       string
	AllOrNothing bool // weir's own: if a descriptor of a request is refused, none of them is charged
	Descriptors  []Descriptor
	Warnings     []*yamlfile.Error

	at place // of the domain
}

// A Descriptor is a node of the tree. An entry of a request is compared with it.
type Descriptor struct {
	Key, Value     string
	CIDR           netip.Prefix   // weir's own: addresses that the value may be; the zero Prefix for none
	Regex          *regexp.Regexp // weir's own: what the whole value may be; nil for none
	RateLimits     []*RateLimit   // empty: only its children have limits; several are weir's own
	ShadowMode     bool
	QuotaMode      bool
	DetailedMetric bool
	ValueToMetric  bool
	ShareThreshold bool
	Metadata       *structpb.Struct
	Descriptors    []Descriptor

	at place
}

// A RateLimit is the limit of a Descriptor, as written.
type RateLimit struct {
	Name            string
	Unit            string // as written; in any case of letters
	UnitMultiplier  *uint32
	RequestsPerUnit uint32
	Unlimited       bool
	Replaces        []string

	// Weir's own.
	Algorithm engine.Algorithm // zero means fixed windows, as in the reference
	Burst     uint64           // of a token bucket; 0: RequestsPerUnit
	Period    time.Duration    // instead of a unit; 0 if there is a unit
	Zone      string           // of a day, week or month of the calendar; "" for multiples of their length
	Overdraw  bool             // hits count even if they exceed what is left
	Quotas    *QuotasText      // of single values; nil for none

	overdrawAt                                   place
	at, unitAt, multiplierAt, zoneAt, replacesAt place
}

// A place is a position in a file. An xDS resource has the zero place.
type place struct{ line, column int }
