package egress

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// mostURL bounds the length of a URL in bytes, as it is given and as it is sent.
const mostURL = 8 << 10

// target is where a request goes, in canonical form.
type target struct {
	scheme string
	// Either name or addr is set.
	name string
	addr netip.Addr
	port uint16
	// url is what is sent: canonical host, no fragment, no credentials.
	url *url.URL
}

// parseTarget reads an absolute URL.
func parseTarget(raw string) (target, *Refusal) {
	if len(raw) > mostURL {
		return target{}, tooLong()
	}
	u, err := url.Parse(raw)
	if err != nil {
		return target{}, refuse(ReasonMalformed, "write scheme://host/path, percent-encoded", "the URL cannot be read")
	}
	t, r := newTarget(u)
	if r == nil && len(t.url.String()) > mostURL {
		return t, tooLong()
	}
	return t, r
}

func tooLong() *Refusal {
	return refuse(ReasonMalformed, "shorten it", "the URL is longer than %d bytes", mostURL)
}

// newTarget checks a URL and brings it into canonical form.
func newTarget(u *url.URL) (target, *Refusal) {
	t := target{scheme: strings.ToLower(u.Scheme)}
	switch {
	case t.scheme != "http" && t.scheme != "https":
		return t, refuse(ReasonScheme, "use https", "the scheme %s is not for HTTP", quote(u.Scheme))
	case u.User != nil:
		return t, refuse(ReasonCredentials, "send an Authorization header with a secret's handle",
			"the URL holds a user or a password")
	case u.Opaque != "" || u.Host == "":
		return t, refuse(ReasonMalformed, "write scheme://host/path", "the URL has no host")
	}
	name, addr, err := canonicalHost(u.Hostname())
	if err != nil {
		reason := ReasonMalformed
		if errors.Is(err, errSpelling) {
			reason = ReasonAddress
		}
		return t, refuse(reason, "", "the host %s %v", quote(u.Hostname()), err)
	}
	t.name, t.addr, t.port = name, addr, defaultPort(t.scheme)
	if text := u.Port(); text != "" {
		if t.port, err = parsePort(text); err != nil {
			return t, refuse(ReasonMalformed, "", "the URL %v", err)
		}
	}
	t.url = &url.URL{Scheme: t.scheme, Host: t.hostPort(), Path: u.Path, RawPath: u.RawPath, RawQuery: escapeQuery(u.RawQuery)}
	if t.url.Path == "" {
		t.url.Path = "/"
	}
	return t, nil
}

// host is the name or the address.
func (t target) host() string {
	if t.addr.IsValid() {
		return t.addr.String()
	}
	return t.name
}

// hostPort is the host as a URL writes it, with the port where it is not the
// scheme's own.
func (t target) hostPort() string {
	if t.port != defaultPort(t.scheme) {
		return net.JoinHostPort(t.host(), strconv.Itoa(int(t.port)))
	}
	if t.addr.Is6() {
		return "[" + t.host() + "]"
	}
	return t.host()
}

// origin tells targets apart that may not share credentials or connections.
func (t target) origin() string { return t.scheme + "://" + t.hostPort() }

// cut is the URL as errors show it: without the query.
func (t target) cut() string {
	if t.url == nil {
		return ""
	}
	const most = 512
	text := t.origin() + t.url.EscapedPath()
	if len(text) > most {
		text = text[:most] + "..."
	}
	return text
}

func defaultPort(scheme string) uint16 {
	if scheme == "http" {
		return 80
	}
	return 443
}

// escapeQuery escapes what must not be in a request line. [url.Parse] lets it through.
func escapeQuery(query string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for _, c := range []byte(query) {
		if c > ' ' && c < 0x7f && c != '"' && c != '<' && c != '>' {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(hex[c>>4])
		b.WriteByte(hex[c&15])
	}
	return b.String()
}
