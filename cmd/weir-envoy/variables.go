package main

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"
)

// notNeeded are variables of the reference that have nothing to set here.
var notNeeded = map[string]string{
	"BACKEND_TYPE":                                  "REDIS_URL says where the counters are; memcache is refused with its address",
	"EXPIRATION_JITTER_MAX_SECONDS":                 "counters end with their windows",
	"LOCAL_CACHE_SIZE_IN_BYTES":                     "there is no cache that could contradict the counters",
	"REDIS_HEALTH_CHECK_ACTIVE_CONNECTION":          "a store that is lost is told by each answer",
	"REDIS_PERSECOND_PIPELINE_LIMIT":                "questions are put together by themselves",
	"REDIS_PERSECOND_PIPELINE_WINDOW":               "questions are put together by themselves",
	"REDIS_PERSECOND_POOL_SIZE":                     "one connection carries all questions",
	"REDIS_PIPELINE_LIMIT":                          "questions are put together by themselves",
	"REDIS_PIPELINE_WINDOW":                         "questions are put together by themselves",
	"REDIS_POOL_SIZE":                               "one connection carries all questions",
	"RUNTIME_IGNOREDOTFILES":                        "dot files are never read",
	"RUNTIME_WATCH_ROOT":                            "links and files are both watched",
	"CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL": "XDS_CLIENT_BACKOFF_... say when to ask again, in the reference, too",
}

// refused are variables of the reference whose meaning would be lost.
var refused = map[string]string{
	"LIMIT_ALL_DESCRIPTORS_HEADERS_ENABLED": "only the headers of the nearest limit are written",
	"MEMCACHE_HOST_PORT":                    "there is no memcache",
	"MEMCACHE_SRV":                          "there is no memcache",
	"USE_CALENDAR_MONTH_RATE_LIMIT":         "a month has 30 days",
	"USE_DOG_STATSD":                        "set USE_STATSD or USE_PROMETHEUS",
}

// refusedVariables is an error that names all variables which are set and refused. Those that are switched off are not
// set.
func refusedVariables(environment []string) error {
	var told []string
	for _, one := range environment {
		name, value, _ := strings.Cut(one, "=")
		if why := refused[name]; why != "" && value != "" && !strings.EqualFold(value, "false") {
			told = append(told, fmt.Sprintf("%s is set, and cannot be heeded: %s", name, why))
		}
	}
	slices.Sort(told)
	if len(told) > 0 {
		return fmt.Errorf("%s", strings.Join(told, "\n"))
	}
	return nil
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

// variables are all that are known, by name.
func variables() []variable {
	var all []variable
	for field := range fields() {
		all = append(all, variable{field.Tag.Get("env"), "read", field.Tag.Get("help")})
	}
	for name, why := range notNeeded {
		all = append(all, variable{name, "not needed", why})
	}
	for name, why := range refused {
		all = append(all, variable{name, "refused", why})
	}
	slices.SortFunc(all, func(a, b variable) int { return strings.Compare(a.name, b.name) })
	return all
}

// fields are those of serve that have a variable.
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
