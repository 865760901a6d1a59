package egress

import (
	"net/netip"
	"time"
)

// Matches reports whether a URL is within a list of hosts.
func Matches(patterns []string, url string) (ok, named bool, err error) {
	set, err := parseHosts("Hosts", patterns)
	if err != nil {
		return false, false, err
	}
	t, r := parseTarget(url)
	if r != nil {
		return false, false, r
	}
	ok, named = set.match(t)
	return ok, named, nil
}

// Canonical is the URL that is sent.
func Canonical(url string) (string, error) {
	t, r := parseTarget(url)
	if r != nil {
		return "", r
	}
	return t.url.String(), nil
}

// CanonicalHost is the host that is compared and resolved.
func CanonicalHost(host string) (string, netip.Addr, error) { return canonicalHost(host) }

// Allowed reports whether an address may be dialled.
func Allowed(private []netip.Prefix, addr netip.Addr, named bool) (bool, error) {
	a, err := newAddresses(private)
	return err == nil && a.allowed(addr, named), err
}

// Redact replaces a secret in a text.
func Redact(text []byte, name, value string, limit int) (string, int, bool) {
	out, n, ok := redact(text, newIndex(needlesOf(name, value)), limit)
	return string(out), n, ok
}

// Bucket is a token bucket.
type Bucket struct{ *bucket }

// NewBucket makes one.
func NewBucket(size int64, now func() time.Time) Bucket {
	return Bucket{&bucket{now: now, size: size, level: &level{}}}
}

// Take takes n tokens or none.
func (b Bucket) Take(n int64) bool { return b.take(n) }

// Drain takes n tokens or all.
func (b Bucket) Drain(n int64) bool { return b.drain(n) }

// Values counts the values that the broker looks for.
func (b *Broker) Values() int {
	n := 0
	for _, s := range b.vault.sent {
		n += len(s)
	}
	return n
}

// Recognisable is the length of a value without escapes.
func Recognisable(value string) int { return recognisable(value) }

// ViewBytes is how many bytes are searched for a text, and how many marks hold where they came from.
func ViewBytes(text []byte) (n, marks int) {
	for _, v := range views(text) {
		n, marks = n+len(v.text), marks+len(v.marks)
	}
	return n, marks
}
