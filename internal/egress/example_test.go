package egress_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"

	"github.com/mortise-dev/mortise/internal/egress"
)

// A plugin may ask one server, with a token that it never sees.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s has sent %s", r.Method, r.Header.Get("Authorization"))
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")

	broker, err := egress.New(egress.Config{
		Policy: egress.Policy{
			Hosts:   []string{host},
			Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, // the server of this example
			Plain:   true,
		},
		Secrets: map[string]egress.Secret{"api": {
			Value: func(context.Context) (string, error) { return "correct-horse-battery", nil },
			Hosts: []string{host},
			Plain: true,
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer broker.Close()

	ctx := context.Background()
	resp, err := broker.Do(ctx, egress.Request{
		URL:    server.URL,
		Header: http.Header{"Authorization": {"Bearer {{secret.api}}"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(resp.Status, string(resp.Body))

	_, err = broker.Do(ctx, egress.Request{URL: "http://169.254.169.254/latest/meta-data/"})
	if refusal, ok := errors.AsType[*egress.Refusal](err); ok {
		fmt.Println(refusal.Reason)
		fmt.Println(refusal.Hint)
	}
	// Output:
	// 200 GET has sent Bearer {{secret.api}}
	// host
	// ask the operator to add it to Policy.Hosts
}
