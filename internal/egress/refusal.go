package egress

import (
	"errors"
	"fmt"
)

// Faults of the network, which no policy made.
var (
	// ErrResolve means that the host's name could not be resolved.
	ErrResolve = errors.New("name not resolved")
	// ErrConnect means that no connection could be made, or that it broke before
	// the response began.
	ErrConnect = errors.New("connection failed")
	// ErrTLS means that the TLS handshake failed, or the certificate is not good.
	ErrTLS = errors.New("TLS failed")
	// ErrProtocol means a response that is not valid HTTP or ended too early.
	ErrProtocol = errors.New("bad response")
)

// Reason names the rule that refused a request.
type Reason string

// Reasons of refusals.
const (
	// ReasonHost is a host or port that the policy does not grant.
	ReasonHost Reason = "host"
	// ReasonAddress is an address that is not public and not granted.
	ReasonAddress Reason = "address"
	// ReasonScheme is a scheme other than https, or http where it is granted.
	ReasonScheme Reason = "scheme"
	// ReasonCredentials is a user or password in the URL.
	ReasonCredentials Reason = "credentials"
	// ReasonMethod is a method that the policy does not grant.
	ReasonMethod Reason = "method"
	// ReasonHeader is a header that is not valid or belongs to the broker.
	ReasonHeader Reason = "header"
	// ReasonRedirect is a redirect too many.
	ReasonRedirect Reason = "redirect"
	// ReasonRate means more requests in a minute than granted.
	ReasonRate Reason = "rate"
	// ReasonBytes means more bytes in a minute than granted.
	ReasonBytes Reason = "bytes"
	// ReasonRequestTooLarge is a request body above Policy.RequestBytes.
	ReasonRequestTooLarge Reason = "request_too_large"
	// ReasonResponseTooLarge is a response body above its limit.
	ReasonResponseTooLarge Reason = "response_too_large"
	// ReasonHeadersTooLarge means headers above Policy.HeaderBytes, of the request
	// or of the response.
	ReasonHeadersTooLarge Reason = "headers_too_large"
	// ReasonTimeout means that Policy.Timeout was over.
	ReasonTimeout Reason = "timeout"
	// ReasonSecret is a secret that is unknown, or that may not be used so.
	ReasonSecret Reason = "secret"
	// ReasonClosed means that the broker was closed.
	ReasonClosed Reason = "closed"
	// ReasonMalformed is a request that cannot be read.
	ReasonMalformed Reason = "malformed"
)

// Refusal is the error of a request that the policy forbids. It is written for
// the plugin's author and for the operator, and holds nothing that either must not see.
type Refusal struct { //nolint:errname // a refusal is an answer of the policy, and callers say so
	Reason Reason
	// URL is scheme, host, port and path of the request, or of the redirect that
	// was refused. It is empty when the URL could not be read.
	URL string
	// Detail describes what is wrong.
	Detail string
	// Hint describes what to do about it.
	Hint string
}

// Error implements error.
func (r *Refusal) Error() string {
	text := "egress: "
	if r.URL != "" {
		text += r.URL + ": "
	}
	text += "refused (" + string(r.Reason) + "): " + r.Detail
	if r.Hint != "" {
		text += "; " + r.Hint
	}
	return text
}

// refuse makes a Refusal whose URL is filled in later.
func refuse(reason Reason, hint, detail string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Detail: fmt.Sprintf(detail, args...), Hint: hint}
}

// quote shortens a text of the plugin or of a server and escapes it.
func quote(s string) string {
	const most = 80
	if len(s) > most {
		s = s[:most] + "..."
	}
	return fmt.Sprintf("%+q", s)
}
