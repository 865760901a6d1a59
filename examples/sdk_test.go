package examples_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
	httpcap "github.com/mortise-dev/mortise/host/capability/http"
	"github.com/mortise-dev/mortise/host/capability/kv"
	modelcap "github.com/mortise-dev/mortise/host/capability/model"
	"github.com/mortise-dev/mortise/internal/guest"
	"github.com/mortise-dev/mortise/internal/testskip"
)

// buildGuest builds the guest in a folder, as an author would.
func buildGuest(t *testing.T, folder ...string) string {
	t.Helper()
	if testing.Short() {
		testskip.Skip(t, "builds a guest; run without -short")
	}
	file := filepath.Join(t.TempDir(), "guest.wasm")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", file, ".")
	cmd.Dir = filepath.Join(folder...)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return file
}

// does is one thing that the guest does, and what it must say.
type does struct{ what, a, b, want string }

// TestSDKCapabilities runs each function of the SDK's packages for capabilities inside
// of a guest, on both engines.
func TestSDKCapabilities(t *testing.T) {
	t.Parallel()
	file := buildGuest(t, "testdata", "capabilities")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("X-Server", `"a" <é>`)
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %s %s", r.Method, r.Header.Get("X-Guest"), body)
	}))
	t.Cleanup(s.Close)
	onEngines(t, func(t *testing.T, h *host.Host) {
		t.Helper()
		grants := trackerGrants(s)
		web, _ := grants.Capability("http").(*httpcap.Grant)
		web.ResponseHeaders = true
		space := &kv.Grant{Store: kv.NewMemory(), Keys: 2100, ValueBytes: 100}
		quota := kv.Quota{Keys: 5000, Bytes: 1 << 20}
		for n := range 2050 { // three pages
			if err := space.Store.Set(t.Context(), "all", fmt.Sprintf("n/%04d", n), nil, quota); err != nil {
				t.Fatal(err)
			}
		}
		model := &modelcap.Grant{ReplyBytes: 50, Ask: func(_ context.Context, request []byte) ([]byte, error) {
			switch string(request) {
			case "nothing":
				return nil, nil
			case "much":
				return bytes.Repeat([]byte("x"), 51), nil
			case "broken":
				return nil, errors.New("a detail that is none of the guest's business")
			}
			return append([]byte("you said "), request...), nil
		}}
		grants.Capabilities = []host.Capability{web, space, model}
		script(t, h, host.Spec{Name: "all", Path: file, Grants: grants}, []does{
			{"set", "k", "a \x00\x01 value of some bytes", "set"},
			{"get", "k", "", `"a \x00\x01 value of some bytes" true`},
			{"get", "none", "", `"" false`},
			{"get", "n/0000", "", `"" true`},
			{"get", "", "", "code invalid; invalid: kv_get: the key is empty"},
			{"set", "k", strings.Repeat("x", 101), "code too large; too large: kv_set: the value has 101 bytes, 100 are allowed"},
			{"list", "n/", "", "2050 n/0000,n/0001,n/0002"},
			{"list", "none", "", "0 "},
			{"list", strings.Repeat("x", 600), "", "code too large; too large: kv_list: a key has at most 512 bytes"},
			{"delete", "k", "", "true"},
			{"delete", "k", "", "false"},
			{"ask", "hello", "", `"you said hello"`},
			{"ask", "nothing", "", `""`},
			{"ask", "", "", "code invalid; invalid: model_ask: the request is empty"},
			{"ask", "much", "", "code too large; too large: model_ask: the answer has 51 bytes, 50 are allowed"},
			{"ask", "broken", "", "code failed; failed: model_ask: it did not work"},
			{"post", s.URL, "body", `418 "\"a\" <é>" POST "quoted" é body`},
			{"post", s.URL, "", `418 "\"a\" <é>" POST "quoted" é `},
			{"post", "https://example.org", "", "code denied; denied: http_fetch: https://example.org/: refused (host): "},
		})
		space.ReadOnly, space.Keys, web.ResponseHeaders = true, 1, false
		script(t, h, host.Spec{Name: "all", Path: file, Grants: grants}, []does{
			{"set", "k", "v", "code denied; denied: kv_set: the operator granted reading only"},
			{"delete", "n/0000", "", "code denied; denied: kv_delete: the operator granted reading only"},
			{"post", s.URL, "x", `418 "" POST "quoted" é x`},
		})
		space.ReadOnly = false
		script(t, h, host.Spec{Name: "all", Path: file, Grants: grants}, []does{
			{"set", "one more", "v", "code quota; quota: kv_set: the quota is used up"},
		})
	})
}

// script loads the guest and goes through what it shall do.
func script(t *testing.T, h *host.Host, spec host.Spec, all []does) {
	t.Helper()
	m, err := h.Load(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	g, err := guest.Open(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		var result abi.ToolResult
		call := &abi.ToolCall{ID: "c1", Name: d.what, Arguments: map[string]any{"a": d.a, "b": d.b}}
		if err := g.Call(t.Context(), abi.ExportCallTool, call, &result); err != nil {
			t.Errorf("%s %.40q: %v", d.what, d.a, err)
			continue
		}
		if result.Message != d.want && (!strings.HasSuffix(d.want, ": ") || !strings.HasPrefix(result.Message, d.want)) {
			t.Errorf("%s %.40q: %s\nwant %s", d.what, d.a, result.Message, d.want)
		}
	}
}
