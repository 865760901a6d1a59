package proxy

import (
	"crypto/rand"
	"net/http"

	"github.com/mortise-dev/mortise/proxy/wire"
)

// kindOf is how Anthropic names an error of a status.
func kindOf(status int) string {
	switch status {
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusBadRequest, http.StatusUpgradeRequired:
		return "invalid_request_error"
	}
	return "api_error"
}

// errorBody is an error in the shape of a protocol.
func errorBody(p wire.Protocol, status int, message string) []byte {
	type object = map[string]any
	if p == wire.Messages || p == "" {
		return wire.Marshal(object{
			"type": "error", "error": object{"type": kindOf(status), "message": message}, "request_id": "req_mortise_" + rand.Text()[:16],
		})
	}
	kind := "server_error"
	if status < http.StatusInternalServerError {
		kind = "invalid_request_error"
	}
	return wire.Marshal(object{"error": object{"message": message, "type": kind, "param": nil, "code": "mortise"}})
}

// fail answers with an error.
func fail(w http.ResponseWriter, p wire.Protocol, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(errorBody(p, status, message))
}
