package egress_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/egress"
)

// TestEndpoint: a server's URL is https, or http on this machine or where that is allowed, has no user in it, and is in no error.
func TestEndpoint(t *testing.T) {
	t.Parallel()
	for raw, plain := range map[string]bool{
		"https://example.com/s3cr3t?k=s3cr3t": false, "http://127.0.0.1:8080/s3cr3t": false, "http://localhost/s3cr3t": false, "http://[::1]/s3cr3t": false, "http://example.com/s3cr3t": true,
	} {
		if u, err := egress.Endpoint(raw, plain); err != nil || u.String() != raw {
			t.Errorf("%s: %v, %v", raw, u, err)
		}
	}
	for _, raw := range []string{
		"http://example.com/s3cr3t", "http://10.0.0.1/s3cr3t", "http://127.0.0.1.example.com/s3cr3t", "http://localhost.example.com/s3cr3t", "http://2130706433/s3cr3t",
		"https://me:s3cr3t@example.com/", "file:///s3cr3t", "s3cr3t", "https:s3cr3t", "https://",
	} {
		if u, err := egress.Endpoint(raw, false); err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %v, %v", raw, u, err)
		}
	}
}

// TestCheckField: no header breaks out of its line, and none describes the connection.
func TestCheckField(t *testing.T) {
	t.Parallel()
	if err := egress.CheckField("X-Key", "s3cr3t"); err != nil {
		t.Error(err)
	}
	for name, value := range map[string]string{
		"X-Key": "s3cr3t\r\nX-Evil: 1", "X Key": "s3cr3t", "": "s3cr3t", "host": "s3cr3t", "Content-Length": "5", "accept-encoding": "gzip", "Connection": "close", "Proxy-Authorization": "s3cr3t",
	} {
		if err := egress.CheckField(name, value); err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
