package egress

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// Endpoint reads the URL of a server that the user of a program names, under the rules for URLs of plugins. It must be https, or http on
// this machine; with plain it may be http anywhere. Errors do not hold the URL, which may have a secret in its path or query.
func Endpoint(raw string, plain bool) (*url.URL, error) {
	t, refused := parseTarget(raw)
	if refused != nil {
		return nil, errors.New(refused.Detail) // its hint is for plugins
	}
	if t.scheme == "http" && !plain && t.name != "localhost" && !t.addr.IsLoopback() {
		return nil, errors.New("http to another machine shows headers and content to the network; use https")
	}
	return t.url, nil
}

// CheckField reports why a header may not be sent with each request: it is malformed, or describes the connection or the body.
func CheckField(name, value string) error {
	switch canonical := http.CanonicalHeaderKey(name); {
	case !isToken(name):
		return fmt.Errorf("the header name %s is not valid; use letters, digits and hyphens", quote(name))
	case !isFieldValue(value):
		return fmt.Errorf("the value of the header %s has line breaks or control characters", canonical)
	case isReserved(canonical) || canonical == "Host" || canonical == "Content-Length" || canonical == "Accept-Encoding":
		return fmt.Errorf("the header %s belongs to the connection; leave it out", canonical)
	}
	return nil
}

// SameOrigin is a CheckRedirect of [http.Client] for requests with credentials. It follows three redirects, none of them to another
// origin, or with another method: a POST that becomes a GET has lost its body.
func SameOrigin(r *http.Request, via []*http.Request) error {
	switch first := via[0]; {
	case r.URL.Host != first.URL.Host || r.URL.Scheme != first.URL.Scheme || len(via) > 3:
		return errors.New("it redirects to another origin, which does not get the headers; configure the URL there")
	case r.Method != first.Method:
		return errors.New("it redirects a " + first.Method + " to a " + r.Method + "; configure the URL there")
	}
	return nil
}
