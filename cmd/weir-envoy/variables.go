package main

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// noEffect has variables of the reference (envoyproxy/ratelimit) that have no effect here. If one is set, the program
// reports it.
var noEffect = map[string]string{
	"CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL": "XDS_CLIENT_BACKOFF_... set the waits, as in the reference",
	"EXPIRATION_JITTER_MAX_SECONDS":                 "counters end with their windows",
	"MEMCACHE_HOST_PORT":                            "for BACKEND_TYPE=memcache only, which is refused",
	"MEMCACHE_MAX_IDLE_CONNS":                       "for BACKEND_TYPE=memcache only, which is refused",
	"MEMCACHE_SRV":                                  "for BACKEND_TYPE=memcache only, which is refused",
	"MEMCACHE_SRV_REFRESH":                          "for BACKEND_TYPE=memcache only, which is refused",
	"MEMCACHE_TLS":                                  "for BACKEND_TYPE=memcache only, which is refused",
	"MEMCACHE_TLS_CACERT":                           "for BACKEND_TYPE=memcache only, which is refused",
	"MEMCACHE_TLS_CLIENT_CERT":                      "for BACKEND_TYPE=memcache only, which is refused",
	"MEMCACHE_TLS_CLIENT_KEY":                       "for BACKEND_TYPE=memcache only, which is refused",
	"MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION":       "for BACKEND_TYPE=memcache only, which is refused",
	"REDIS_CLUSTER_PIPELINE_PARALLELISM":            "calls to a cluster are always in parallel",
	"REDIS_HEALTH_CHECK_ACTIVE_CONNECTION":          "each answer reports a store that is lost",
	"REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM":  "calls to a cluster are always in parallel",
	"REDIS_PERSECOND_PIPELINE_LIMIT":                "calls are always sent together",
	"REDIS_PERSECOND_PIPELINE_WINDOW":               "calls are always sent together",
	"REDIS_PERSECOND_POOL_SIZE":                     "one connection carries all calls",
	"REDIS_PIPELINE_LIMIT":                          "calls are always sent together",
	"REDIS_PIPELINE_WINDOW":                         "calls are always sent together",
	"REDIS_POOL_SIZE":                               "one connection carries all calls",
	"RUNTIME_IGNOREDOTFILES":                        "dot files are never read",
	"RUNTIME_WATCH_ROOT":                            "links and files are both watched",
}

// partlySupported has variables of the reference for which this program supports only some values. It refuses other
// values.
var partlySupported = map[string]struct {
	values []string
	reason string
}{
	"BACKEND_TYPE": {[]string{"redis"}, "want redis, with REDIS_URL; without it counters " +
		"are in memory, and memcache is not supported"},
	"REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR": {[]string{"WAIT"}, "want WAIT: one connection carries all calls"},
	"REDIS_POOL_ON_EMPTY_BEHAVIOR":           {[]string{"WAIT"}, "want WAIT: one connection carries all calls"},
}

// unsupported has variables of the reference whose meaning this program does not support.
var unsupported = map[string]string{
	"USE_CALENDAR_MONTH_RATE_LIMIT": "a month has 30 days",
	"USE_DOG_STATSD":                "set USE_STATSD or USE_PROMETHEUS",
	"USE_DOG_STATSD_MOGRIFIERS":     "set USE_STATSD or USE_PROMETHEUS",
}

// refusedVariables returns an error that names every variable with an unsupported value. A variable that is switched
// off (for example, with "false") counts as not set.
func refusedVariables(environment []string) error {
	var reasons []string
	for name, value := range setVariables(environment) {
		if reason := unsupported[name]; reason != "" {
			reasons = append(reasons, fmt.Sprintf("%s is set, but cannot be supported: %s", name, reason))
		}
		partly, found := partlySupported[name]
		if found && !slices.ContainsFunc(partly.values, func(v string) bool { return strings.EqualFold(v, value) }) {
			reasons = append(reasons, fmt.Sprintf("%s=%s: %s", name, value, partly.reason))
		}
	}
	slices.Sort(reasons)
	if len(reasons) > 0 {
		return errors.New(strings.Join(reasons, "\n"))
	}
	return nil
}

// ignoredVariables returns the variables that are set but have no effect, each with the reason.
func ignoredVariables(environment []string) (ignored []variable) {
	for name := range setVariables(environment) {
		if reason := noEffect[name]; reason != "" {
			ignored = append(ignored, variable{name, "no effect", reason})
		}
	}
	slices.SortFunc(ignored, func(a, b variable) int { return strings.Compare(a.name, b.name) })
	return ignored
}

// setVariables returns the variables that are neither empty nor switched off.
func setVariables(environment []string) map[string]string {
	values := map[string]string{}
	for _, assignment := range environment {
		name, value, _ := strings.Cut(assignment, "=")
		if enabled, err := strconv.ParseBool(value); value != "" && (err != nil || enabled) {
			values[name] = value
		}
	}
	return values
}

type variablesCommand struct{}

// Run prints the table of docs/envoy.md.
func (variablesCommand) Run() error {
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	for _, v := range variables() {
		fmt.Fprintf(w, "%s\t%s\t%s\n", v.name, v.kind, v.text)
	}
	return w.Flush()
}

type variable struct{ name, kind, text string }

func variables() []variable {
	var result []variable
	for field := range fields() {
		result = append(result, variable{field.Tag.Get("env"), "read", field.Tag.Get("help")})
	}
	for name, reason := range noEffect {
		result = append(result, variable{name, "no effect", reason})
	}
	for name, partly := range partlySupported {
		result = append(result, variable{name, "only " + strings.Join(partly.values, ", "), partly.reason})
	}
	for name, reason := range unsupported {
		result = append(result, variable{name, "refused", reason})
	}
	slices.SortFunc(result, func(a, b variable) int { return strings.Compare(a.name, b.name) })
	return result
}

// fields yields the fields of serveCommand that have a variable.
func fields() func(yield func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		t := reflect.TypeFor[serveCommand]()
		for _, field := range reflect.VisibleFields(t) {
			if field.Tag.Get("env") != "" && !yield(field) {
				return
			}
		}
	}
}
