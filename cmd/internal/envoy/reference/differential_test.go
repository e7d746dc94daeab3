package reference

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
)

const requests = 4000

// modes has the settings for weir-envoy and for envoyproxy/ratelimit. In every mode, envoyproxy/ratelimit counts in a
// Redis.
var modes = []struct {
	name, what  string
	environment []string
	store       bool // weir-envoy also counts in a Redis
	negative    int  // percent of the descriptors that have is_negative_hits
}{
	{"memory", "defaults", nil, false, 0},
	{"store", "weir-envoy counts in a Redis", nil, true, 0},
	{"stop", "`STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT`", []string{"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=true"}, false, 0},
	{"quota", "`QUOTA_MODE`", []string{"QUOTA_MODE=true"}, false, 0},
	{"negative", "`is_negative_hits` in 5 % of the descriptors", nil, false, 5},
	{"stopped store", "`STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT`, and weir-envoy counts in a Redis", []string{"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=true"}, true, 0},
	{"cache", "`LOCAL_CACHE_SIZE_IN_BYTES`, and weir-envoy counts in a Redis", []string{"LOCAL_CACHE_SIZE_IN_BYTES=1000000"}, true, 0},
}

// TestDifferential sends the same random requests to both services, and fails if the numbers of equal answers differ
// from docs/envoy.md.
func TestDifferential(t *testing.T) {
	folder := checkout(t)
	theirs, ours := program(t, folder, "ratelimit"), weirEnvoy(t)
	document, err := os.ReadFile("../../../../docs/envoy.md")
	require.NoError(t, err)
	for i, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			s := source{rand.New(rand.NewPCG(uint64(i), 35)), mode.negative}
			root := filepath.Join(t.TempDir(), "root")
			require.NoError(t, os.MkdirAll(filepath.Join(root, "ratelimit", "config"), 0o755))
			for name, text := range s.rules() {
				require.NoError(t, os.WriteFile(filepath.Join(root, "ratelimit", "config", name), []byte(text), 0o644))
			}
			environment := append([]string{"LIMIT_RESPONSE_HEADERS_ENABLED=true", "RESPONSE_DYNAMIC_METADATA=true"},
				mode.environment...)
			reference := serve(t, theirs, root, append(environment, "REDIS_SOCKET_TYPE=tcp", "REDIS_URL="+redis(t))...)
			if mode.store {
				environment = append(environment, "REDIS_URL="+redis(t), "REDIS_TIMEOUT=10s")
			}
			same := compare(t, s, reference, serve(t, ours, root, environment...))
			row := fmt.Sprintf("| %s | %d | %d | %d |", mode.what, same.answers, same.headers, same.metadata)
			t.Log(row)
			assert.True(t, strings.Contains(string(document), row), "the table of docs/envoy.md has other figures: %s", row)
		})
	}
}

type same struct{ answers, headers, metadata int }

func compare(t *testing.T, s source, reference, weir rlsv3.RateLimitServiceClient) (n same) {
	t.Helper()
	hour := time.Now().Truncate(time.Hour)
	for asked := range requests {
		request := s.request()
		theirs, ours := answer(t, reference, request), answer(t, weir, request)
		if theirs.text == ours.text {
			n.answers++
		} else if different := asked + 1 - n.answers; different <= 10 {
			t.Logf("%s\n  reference: %s\n  weir:      %s", protojson.Format(request), theirs.text, ours.text)
		}
		if theirs.headers == ours.headers {
			n.headers++
		}
		if theirs.metadata == ours.metadata {
			n.metadata++
		}
	}
	require.Equal(t, hour, time.Now().Truncate(time.Hour), "an hour began during the run, and windows with it: run it again")
	return n
}

type answered struct {
	text, headers, metadata string
}

func answer(t *testing.T, from rlsv3.RateLimitServiceClient, request *rlsv3.RateLimitRequest) answered {
	t.Helper()
	response, err := from.ShouldRateLimit(context.Background(), request)
	if err != nil {
		return answered{text: status.Convert(err).Message()}
	}
	var text, headers strings.Builder
	text.WriteString(response.GetOverallCode().String())
	for _, s := range response.GetStatuses() {
		reset := ""
		if s.GetDurationUntilReset() != nil {
			reset = coarse(t, strconv.FormatInt(s.GetDurationUntilReset().GetSeconds(), 10))
		}
		fmt.Fprintf(&text, "; %s %d %s of %d %s %q", s.GetCode(), s.GetLimitRemaining(), reset,
			s.GetCurrentLimit().GetRequestsPerUnit(), s.GetCurrentLimit().GetUnit(), s.GetCurrentLimit().GetName())
	}
	for _, h := range response.GetResponseHeadersToAdd() {
		value := h.GetValue()
		if strings.HasSuffix(h.GetKey(), "Reset") {
			value = coarse(t, value)
		}
		fmt.Fprintf(&headers, "%s: %s; ", h.GetKey(), value)
	}
	// In the text of a protobuf message, one or two spaces separate fields, depending on how the program was compiled.
	metadata := strings.ReplaceAll(fmt.Sprint(response.GetDynamicMetadata().AsMap()), "  ", " ")
	return answered{text.String(), headers.String(), metadata}
}

// coarse takes the seconds until a window ends and returns the time of the end, rounded to a minute. Rounding is
// necessary because the services are asked at slightly different times. It is harmless because windows end only at full
// hours.
func coarse(t *testing.T, seconds string) string {
	t.Helper()
	n, err := strconv.Atoi(seconds)
	require.NoError(t, err)
	return time.Now().Add(time.Duration(n) * time.Second).Round(time.Minute).UTC().Format(time.DateTime)
}
