package proxycmd

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mortise-dev/mortise/proxy"
)

// The ledger is for this machine: no web page reads it, also not under a name that leads here.
func TestProxyAdmin_foreign(t *testing.T) {
	t.Parallel()
	s, err := proxy.New(t.Context(), proxy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	for host, want := range map[string]int{"localhost:8431": http.StatusOK, "evil.example:8431": http.StatusForbidden} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/proxy", http.NoBody)
		r.Host, r.RemoteAddr = host, "127.0.0.1:9"
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		w := httptest.NewRecorder()
		proxyAdmin(s).ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: %d %s", host, w.Code, w.Body)
		}
	}
}
