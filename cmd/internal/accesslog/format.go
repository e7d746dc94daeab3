package accesslog

import (
	"fmt"
	"slices"
	"strings"
)

// A format is a notation of access logs.
type format struct {
	name  string
	parse func(*parser, []byte) error
}

// formats has all known formats. A line has at most one of them, except for combined and common, which share a parser.
// detect tries only combined, and calls it common if no line has a referer.
var formats = []*format{
	combined,
	common,
	{"vhost_combined", (*parser).parseVHost},
	{"nginx_json", (*parser).parseNginx},
	{"caddy", (*parser).parseCaddy},
	{"traefik_json", (*parser).parseTraefik},
	{"weir", (*parser).parseWeir},
	{"weir_json", (*parser).parseWeirJSON},
	{"alb", (*parser).parseALB},
	{"elb", (*parser).parseELB},
	{"s3", (*parser).parseS3},
	{"cloudfront", (*parser).parseCloudFront},
	{"gcp", (*parser).parseGCP},
	{"iis", (*parser).parseIIS},
	{"haproxy", (*parser).parseHTTPLog},
	{"envoy", (*parser).parseEnvoy},
	{"istio", (*parser).parseIstio},
	{"envoy_json", (*parser).parseEnvoyJSON},
}

// detectable has the formats that detect tries on a log.
var detectable = slices.DeleteFunc(slices.Clone(formats), func(f *format) bool { return f == common })

var (
	combined = &format{"combined", (*parser).parseCommon}
	common   = &format{"common", (*parser).parseCommon}
)

// Formats returns the names of the formats.
func Formats() []string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.name
	}
	return names
}

func formatNamed(name string) (*format, error) {
	if name == "" {
		return nil, nil
	}
	for _, f := range formats {
		if f.name == name {
			return f, nil
		}
	}
	return nil, fmt.Errorf("there is no format %q: want %s", name, strings.Join(Formats(), ", "))
}
