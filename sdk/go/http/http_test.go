//go:build !wasip1

package http_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"testing"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/sdk/go/capability"
	"github.com/mortise-dev/mortise/sdk/go/http"
	"github.com/mortise-dev/mortise/sdk/go/secret"
)

func FuzzRequest(f *testing.F) {
	f.Add("GET", "https://example.com/?q=\"\\\n", "X-Test", "\x00\x1f\u2028😀")
	f.Fuzz(func(t *testing.T, method, url, name, value string) {
		var got struct {
			URL, Method string
			Headers     map[string]string
		}
		raw := http.AppendRequest(http.Request{Method: method, URL: url, Header: map[string]string{name: value, "B": "b"}})
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		if utf8.ValidString(method+" "+url+" "+name+" "+value) && (got.Method != method || got.URL != url || got.Headers[name] != value && name != "B") {
			t.Errorf("%q %q %q %q became %+v", method, url, name, value, got)
		}
	})
}

func FuzzHeaders(f *testing.F) {
	f.Add("content-type", "text/html; charset=\"utf-8\"")
	f.Add("a<b>&", "\x00\n\u2028\u00e9😀")
	f.Fuzz(func(t *testing.T, name, value string) {
		want := map[string]string{name: value, "b": "c"}
		raw, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if got := http.ReadHeaders(string(raw)); utf8.ValidString(name+" "+value) && !maps.Equal(got, want) {
			t.Errorf("%s became %q", raw, got)
		}
		http.ReadHeaders(name + value) // any text: it returns
	})
}

// TestDo and the example share the server of the package, so they do not run in parallel.
func TestDo(t *testing.T) {
	if _, err := http.Do(http.Request{URL: "https://example.com"}); !errors.Is(err, capability.Denied) {
		t.Errorf("error %v", err)
	}
	refusal := &capability.Error{Code: capability.Quota}
	restore := http.Provide(func(http.Request) (http.Response, error) { return http.Response{}, refusal })
	if _, err := http.Do(http.Request{}); !errors.Is(err, capability.Quota) {
		t.Errorf("error %v", err)
	}
	restore()
	if _, err := http.Do(http.Request{}); !errors.Is(err, capability.Denied) {
		t.Errorf("error %v", err)
	}
}

func Example() {
	// A test answers itself; a guest asks the host.
	defer http.Provide(func(r http.Request) (http.Response, error) {
		return http.Response{Status: 200, Body: []byte(r.URL + " with " + r.Header["Authorization"])}, nil
	})()
	r, err := http.Do(http.Request{
		URL: "https://api.example.com/me", Header: map[string]string{"Authorization": "Bearer " + secret.Ref("TOKEN")},
	})
	fmt.Println(r.Status, string(r.Body), err)
	// Output: 200 https://api.example.com/me with Bearer {{secret.TOKEN}} <nil>
}
