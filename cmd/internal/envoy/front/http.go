// Package front has the HTTP interfaces of the service, and the TLS settings of its gRPC server.
package front

import (
	"errors"
	"io"
	"net/http"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/weir-go/weir/cmd/internal/envoy"
)

const maxBody = 1 << 20

// HTTP serves /healthcheck and /json. The path /json takes a rate limit request as protobuf JSON, with any method. As
// in envoyproxy/ratelimit, the status is 200 if the request passes, and 429 if it is over the limit. For an error, even
// of the store, the status is 400. It is 413 if the body is too large.
func HTTP(service *envoy.Service, healthy func() bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthcheck", func(w http.ResponseWriter, _ *http.Request) {
		if !healthy() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, "OK")
	})
	mux.HandleFunc("/json", func(w http.ResponseWriter, r *http.Request) { answerJSON(service, w, r) })
	return mux
}

func answerJSON(service *envoy.Service, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		http.Error(w, "the body is larger than a megabyte", http.StatusRequestEntityTooLarge)
		return
	}
	request := &rlsv3.RateLimitRequest{}
	if err == nil {
		err = protojson.Unmarshal(body, request)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	response, err := service.ShouldRateLimit(r.Context(), request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	text, err := protojson.Marshal(response)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if response.GetOverallCode() == rlsv3.RateLimitResponse_OVER_LIMIT {
		w.WriteHeader(http.StatusTooManyRequests)
	}
	_, _ = w.Write(text)
}
