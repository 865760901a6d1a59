package egress

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// screenHeader returns the headers to send, with canonical names, before secrets
// are filled in.
func (b *Broker) screenHeader(given http.Header, t target, body int) (http.Header, *Refusal) {
	out := http.Header{}
	size := 0
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !isToken(name) {
			return nil, refuse(ReasonHeader, "use letters, digits and hyphens", "the header name %s is not valid", quote(name))
		}
		canonical := http.CanonicalHeaderKey(name)
		for _, value := range given[name] {
			size += len(canonical) + len(value) + len(": \r\n")
			if size > b.policy.HeaderBytes {
				return nil, refuse(ReasonHeadersTooLarge, "send less", "the request's headers are larger than %d bytes", b.policy.HeaderBytes)
			}
			if !isFieldValue(value) {
				return nil, refuse(ReasonHeader, "leave out line breaks and control characters",
					"the value of the header %s is not valid", quote(canonical))
			}
			keep, r := b.screenField(canonical, strings.TrimSpace(value), t, body)
			if r != nil {
				return nil, r
			}
			if keep {
				out[canonical] = append(out[canonical], value)
			}
		}
	}
	if out.Get("User-Agent") == "" {
		out.Set("User-Agent", b.userAgent)
	}
	out.Set("Accept-Encoding", "identity")
	return out, nil
}

// screenField reports whether a header is sent. What says only what the broker
// says anyway is dropped, because HTTP libraries set it unasked.
func (b *Broker) screenField(name, value string, t target, body int) (keep bool, _ *Refusal) {
	switch name {
	case "Host":
		if h, r := parseTarget(t.scheme + "://" + value); r == nil && h.hostPort() == t.hostPort() {
			return false, nil
		}
		return false, refuse(ReasonHeader, "leave it out, or name the host of the URL", "the header Host differs from the URL")
	case "Content-Length":
		if value == strconv.Itoa(body) {
			return false, nil
		}
		return false, refuse(ReasonHeader, "leave it out", "the header Content-Length differs from the body")
	case "Accept-Encoding":
		if strings.EqualFold(value, "identity") {
			return false, nil
		}
		return false, refuse(ReasonHeader, "leave it out", "responses are not decompressed, so none is asked for compressed")
	case "X-Http-Method-Override", "X-Http-Method", "X-Method-Override":
		if !slices.Contains(b.policy.Methods, strings.ToUpper(value)) {
			return false, refuse(ReasonMethod, "ask the operator to grant the method in Policy.Methods",
				"the header %s asks for the method %s, which is not granted", name, quote(value))
		}
		return true, nil
	}
	if isReserved(name) {
		return false, refuse(ReasonHeader, "leave it out", "the header %s belongs to the broker", name)
	}
	return true, nil
}

// isReserved reports headers that belong to one connection, or that say
// something about proxies which a plugin cannot know.
func isReserved(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Transfer-Encoding", "Te", "Trailer", "Upgrade", "Expect",
		"Http2-Settings", "Via", "Forwarded", "X-Real-Ip":
		return true
	}
	return strings.HasPrefix(name, "Proxy-") || strings.HasPrefix(name, "X-Forwarded-")
}

// isFieldValue reports whether a value can be sent as it is.
func isFieldValue(value string) bool {
	for _, c := range []byte(value) {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// leaveOrigin takes out what was meant for the origin that is left. Values with
// handles go by the rules of their secrets.
func leaveOrigin(h http.Header) {
	for _, name := range []string{"Authorization", "Cookie", "Cookie2", "Www-Authenticate", "Referer", "Origin"} {
		h[name] = slices.DeleteFunc(h[name], func(v string) bool { return !hasHandle(v) })
		if len(h[name]) == 0 {
			delete(h, name)
		}
	}
}

// leaveBody takes out what described a body that is not sent again.
func leaveBody(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, "Content-") {
			delete(h, name)
		}
	}
}
