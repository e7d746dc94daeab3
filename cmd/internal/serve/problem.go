package serve

import (
	"encoding/json"
	"net/http"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/httplimit"
)

// fail answers a request that cannot be served. The answer has the same format as a refusal.
func fail(w http.ResponseWriter, r *http.Request, body rulefile.Body, status int, detail string) {
	if x := exchangeOf(r); x != nil {
		x.answeredBy = byWeir
	}
	if httplimit.IsGRPC(r) {
		failGRPC(w, grpcCode(status), detail)
		return
	}
	contentType, value := "application/problem+json", any(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{"about:blank", http.StatusText(status), status, detail})
	if body == rulefile.BodyJSON {
		contentType, value = "application/json", struct {
			Error string `json:"error"`
		}{detail}
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // an error means that the client has gone
}
