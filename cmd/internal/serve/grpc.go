package serve

import (
	"net/http"
	"net/url"
	"strconv"
)

const (
	grpcInvalidArgument  = 3
	grpcDeadlineExceeded = 4
	grpcPermissionDenied = 7
	grpcUnimplemented    = 12
	grpcInternal         = 13
	grpcUnavailable      = 14
)

// failGRPC answers a gRPC call that cannot be served. The status is in the header, and there is no message.
func failGRPC(w http.ResponseWriter, code int, detail string) {
	h := w.Header()
	h.Set("Content-Type", "application/grpc")
	h.Set("Grpc-Status", strconv.Itoa(code))
	// gRPC requires that all characters except printable ASCII are escaped. It permits the other escapes of PathEscape.
	h.Set("Grpc-Message", url.PathEscape(detail))
	w.WriteHeader(http.StatusOK)
}

func grpcCode(status int) int {
	switch status {
	case http.StatusBadRequest, http.StatusRequestTimeout:
		return grpcInvalidArgument
	case http.StatusForbidden:
		return grpcPermissionDenied
	case http.StatusNotFound:
		return grpcUnimplemented
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return grpcUnavailable
	}
	return grpcInternal
}
