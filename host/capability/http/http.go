package http

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/egress"
	"github.com/mortise-dev/mortise/internal/engine"
)

// Grant grants requests by http_fetch, and by http_request of Extism. Each request,
// and each redirect of one, is checked against all of it, and the connection goes
// to an address that was checked. The budgets are those of the module, over all its
// calls, whatever its generation. A zero is the default, a negative number an error.
type Grant struct {
	// Hosts may be asked: "api.example.com", "*.example.com" (every name below it),
	// "api.example.com:8443", "192.0.2.7", and "*" for any public host. Without a port
	// the scheme's own port is meant. Required.
	Hosts []string
	// Private are addresses that are refused by default, because they are not
	// public, and may be reached all the same, through a host that Hosts names.
	Private []netip.Prefix
	// Plain grants http as well as https.
	Plain bool
	// Methods default to GET, HEAD, POST, PUT, PATCH and DELETE.
	Methods []string
	// RequestBytes, ResponseBytes and HeaderBytes bound the two bodies and the
	// headers. Default 1 MiB, 4 MiB and 64 KiB.
	RequestBytes, ResponseBytes, HeaderBytes int
	// Timeout bounds a request with its redirects and its body. Default 10 s; the
	// guest's call ends at its own deadline, which is earlier by default.
	Timeout time.Duration
	// Redirects is how many are followed. Default 3; -1 follows none, and the guest
	// gets the redirect.
	Redirects int
	// PerMinute and BytesPerMinute are budgets: requests with their redirects, and
	// bytes in both directions. Default 60 and 64 MiB.
	PerMinute      int
	BytesPerMinute int64
	// Concurrent is how many requests run at once; others wait. Default 4.
	Concurrent int
	// ResponseHeaders lets the guest read the headers of a response, with http_headers.
	ResponseHeaders bool
	// Resolver finds addresses. Default net.DefaultResolver.
	Resolver Resolver
	// RootCAs are the authorities to trust. Default those of the system.
	RootCAs *x509.CertPool
	// Secrets are the credentials that the guest may send, by their names.
	Secrets map[string]Secret
	// UserAgent is sent where the guest sends none. Default "mortise".
	UserAgent string
}

// Resolver finds the addresses of a name, as net.Resolver does. It must return
// when ctx ends.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Secret is a credential that a guest uses by its handle and never sees. In the
// value of a header, {{secret.NAME}} becomes the value, and {{basic.NAME}} for
// the base64 of a value of the form user:password; they are filled in right before
// the request is sent. A value that a server sends back is replaced by its handle; a
// response that is compressed, or a piece of one, cannot be searched and is refused.
type Secret struct {
	// Value returns the value of 8 bytes to 4 KiB, without line breaks. It is called
	// for each request that needs it, and for a first response, to know what to look
	// for: responses wait for 2 seconds at most, it has 10, and while it is not known the log
	// reports that responses are not searched for it. It must return when ctx ends, and must be safe for concurrent use. The text
	// of its error is dropped. Required.
	Value func(ctx context.Context) (string, error)
	// Hosts are where it may be sent, as in [HTTP].Hosts but without "*". Required.
	Hosts []string
	// Headers are where its handle may stand. Default Authorization; "*" is any.
	Headers []string
	// Plain lets it be sent over http, where that is granted.
	Plain bool
}

// openBroker makes the broker of a generation. What all of a module use up of their budgets is in budget.
func (h *Grant) openBroker(budget *egress.Budget, logger *slog.Logger) (*egress.Broker, error) {
	if len(h.Hosts) == 0 {
		return nil, errors.New(`http.Grant.Hosts is empty; name the hosts, or "*" for any public one`)
	}
	secrets := make(map[string]egress.Secret, len(h.Secrets))
	for name, s := range h.Secrets {
		secrets[name] = egress.Secret(s)
	}
	b, err := egress.New(egress.Config{
		Policy: egress.Policy{
			Hosts: h.Hosts, Private: h.Private, Plain: h.Plain, Methods: h.Methods,
			RequestBytes: h.RequestBytes, ResponseBytes: h.ResponseBytes, HeaderBytes: h.HeaderBytes,
			Timeout: h.Timeout, Redirects: h.Redirects, PerMinute: h.PerMinute, Concurrent: h.Concurrent, BytesPerMinute: h.BytesPerMinute,
		},
		Secrets: secrets, Resolver: h.Resolver, RootCAs: h.RootCAs, UserAgent: h.UserAgent, Budget: budget, Logger: logger,
	})
	if err != nil {
		return nil, errors.New(grantFields(strings.TrimPrefix(err.Error(), "egress: "))) // no caller asks for a cause
	}
	return b, nil
}

// grantFields gives the broker's fields the names that they have in a grant.
func grantFields(text string) string {
	return strings.NewReplacer("Policy.", "http.Grant.", "Config.Secrets", "http.Grant.Secrets", "Config.", "http.Grant.").Replace(text)
}

// httpCode is the code for a refusal.
func httpCode(reason egress.Reason) engine.ErrorCode {
	switch reason {
	case egress.ReasonRate, egress.ReasonBytes:
		return engine.CodeQuota
	case egress.ReasonRequestTooLarge, egress.ReasonResponseTooLarge, egress.ReasonHeadersTooLarge:
		return engine.CodeTooLarge
	case egress.ReasonTimeout:
		return engine.CodeTimeout
	case egress.ReasonMalformed:
		return engine.CodeInvalid
	case egress.ReasonClosed:
		return engine.CodeFailed
	default:
		return engine.CodeDenied
	}
}

// httpFailure describes what became of a request without a response.
func httpFailure(err error) (engine.ErrorCode, string) {
	r, ok := errors.AsType[*egress.Refusal](err)
	if !ok {
		return engine.CodeFailed, strings.TrimPrefix(err.Error(), "egress: ")
	}
	text := fmt.Sprintf("refused (%s): %s", r.Reason, r.Detail)
	if r.URL != "" {
		text = r.URL + ": " + text
	}
	if r.Hint != "" {
		text += "; " + grantFields(r.Hint)
	}
	return httpCode(r.Reason), text
}
