package config

import (
	"net/netip"
	"regexp"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
	"github.com/weir-go/weir/engine"
)

// A Document is the content of one file or xDS resource, before Compile.
type Document struct {
	File         string // for messages
	Domain       string
	AllOrNothing bool // added by weir: if a descriptor of a request is refused, no descriptor is charged
	Descriptors  []Descriptor
	Warnings     []*yamlfile.Error

	pos position // where the domain is in the file
}

// A Descriptor is a node of the tree, compared with an entry of a request.
type Descriptor struct {
	Key, Value     string
	CIDR           netip.Prefix   // added by weir: addresses that the value may be; the zero Prefix if none
	Regex          *regexp.Regexp // added by weir: what the whole value must match; nil if there is no regex
	RateLimits     []*RateLimit   // empty if only its children have limits; more than one is an addition by weir
	ShadowMode     bool
	QuotaMode      bool
	DetailedMetric bool
	ValueToMetric  bool
	ShareThreshold bool
	Metadata       *structpb.Struct
	Descriptors    []Descriptor

	hasList bool // the file has rate_limits instead of rate_limit
	pos     position
}

// A RateLimit is the limit of a Descriptor, as written.
type RateLimit struct {
	Name            string
	Unit            string // as written, in upper or lower case
	UnitMultiplier  *uint32
	RequestsPerUnit uint32
	Unlimited       bool
	Replaces        []string

	// The fields below are additions of weir.
	Algorithm engine.Algorithm // zero means fixed windows, as in envoyproxy/ratelimit
	Burst     uint64           // the burst of a token bucket; 0 means RequestsPerUnit
	Period    time.Duration    // instead of a unit; 0 if there is a unit
	Zone      string           // zone of calendar days, weeks or months; "": multiples of their length
	Overdraw  bool             // hits count even if they exceed what is left
	Quotas    *QuotasText      // limits of single values; nil if there are none

	overdrawPos                                       position
	pos, unitPos, multiplierPos, zonePos, replacesPos position
}

// A position is a place in a file. In an xDS resource, every position is zero.
type position struct{ line, column int }
