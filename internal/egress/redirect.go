package egress

import (
	"net/http"
	"net/url"
)

// redirection is where a response redirects to, and how.
type redirection struct {
	status int
	to     *url.URL
}

// isRedirect reports whether a response describes where to continue.
func isRedirect(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return resp.Header.Get("Location") != ""
	}
	return false
}

// redirect moves an exchange on to another URL, and checks it as if the plugin had
// asked for it. A 303, and a 301 or 302 after POST, turn the request into
// a GET without a body, as browsers do it.
func (b *Broker) redirect(x *exchange, hop *redirection) error {
	if x.hops >= b.policy.Redirects {
		return refuse(ReasonRedirect, "use the final URL, or ask the operator to raise Policy.Redirects",
			"more than %d redirects", b.policy.Redirects)
	}
	x.hops++
	last := x.target
	x.from = last.cut()
	next, r := parseTarget(hop.to.String())
	x.target = next
	if r != nil {
		return r
	}
	if turnsToGet(hop.status, x.method) {
		x.method, x.body = http.MethodGet, nil
		leaveBody(x.header)
	}
	if next.origin() != last.origin() {
		leaveOrigin(x.header)
		b.vault.dropForeign(x.header, next)
	}
	if r := b.permit(x); r != nil {
		return r
	}
	return nil
}

func turnsToGet(status int, method string) bool {
	switch status {
	case http.StatusSeeOther:
		return method != http.MethodGet && method != http.MethodHead
	case http.StatusMovedPermanently, http.StatusFound:
		return method == http.MethodPost
	}
	return false
}
