package examples_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
	httpcap "github.com/mortise-dev/mortise/host/capability/http"
	"github.com/mortise-dev/mortise/host/capability/kv"
	"github.com/mortise-dev/mortise/host/hosttest"
	"github.com/mortise-dev/mortise/plugins"
)

// token was made up for this test.
const token = "tr-9c41d0e7b2a85f36"

const lookup = "../testdata/guests/lookup.wasm"

// tracker answers tickets, and sends back what it was sent, as a careless one would.
func tracker(t *testing.T, asked *atomic.Int64) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch {
		case r.Header.Get("Authorization") != "Bearer "+token:
			t.Errorf("the tracker was sent %q", r.Header.Get("Authorization"))
		case r.URL.Path == "/tickets/OPS-404":
			http.NotFound(w, r)
		default:
			fmt.Fprintf(w, `{"id":%q,"title":"Queue is stuck","you_sent":%q}`, r.URL.Path, r.Header.Get("Authorization"))
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// trackerGrants let a plugin ask a server of the test.
func trackerGrants(s *httptest.Server) host.Grants {
	address := s.Listener.Addr().String()
	return host.Grants{Capabilities: []host.Capability{&kv.Grant{Store: kv.NewMemory()}, &httpcap.Grant{Hosts: []string{address}, Plain: true, Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Secrets: map[string]httpcap.Secret{"TRACKER": {
		Value: func(context.Context) (string, error) { return token, nil }, Hosts: []string{address}, Plain: true,
	}}}}}
}

func onEngines(t *testing.T, test func(t *testing.T, h *host.Host)) {
	t.Helper()
	cache := ""
	if dir, err := os.UserCacheDir(); err == nil {
		cache = filepath.Join(dir, "mortise-test")
	}
	for _, e := range []string{hosttest.Native, hosttest.Extism} {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			h, err := host.New(host.Config{Engine: hosttest.Engine(e), CacheDir: cache, Limits: host.Limits{InitTimeout: time.Minute}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := h.Close(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
			})
			test(t, h)
		})
	}
}

// TestLookup runs the plugin from what it asks for to what the model reads: granted,
// it asks the tracker once for each ticket; the tracker gets the token, and the token
// is nowhere in what the guest says or keeps.
func TestLookup(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, h *host.Host) {
		t.Helper()
		var asked atomic.Int64
		s := tracker(t, &asked)
		grants := trackerGrants(s)
		set, err := plugins.Load(t.Context(), h, []plugins.Entry{{
			Module: host.Spec{Path: lookup, Grants: grants}, Config: map[string]any{"url": s.URL + "/tickets/"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		for n := range 3 {
			said := say(t, set, "What about OPS-7 and OPS-404?")
			if !strings.Contains(said, "Queue is stuck") || !strings.Contains(said, `"you_sent":"Bearer {{secret.TRACKER}}"`) {
				t.Errorf("the plugin says %s", said)
			}
			if strings.Contains(said, token) {
				t.Error("the token is in what the plugin says")
			}
			if got := asked.Load(); got != 2 {
				t.Errorf("event %d: the tracker was asked %d times, want 2", n, got)
			}
		}
		space, _ := grants.Capability("kv").(*kv.Grant)
		kept, found, err := space.Store.Get(t.Context(), "lookup", "ticket/OPS-7")
		if err != nil || !found || strings.Contains(string(kept), token) || !strings.Contains(string(kept), "Queue is stuck") {
			t.Errorf("kept %q, %v, %v", kept, found, err)
		}
		if s := set.Stats()["lookup"]; s.Uses["http"] != 2 || s.Denied != 0 || s.Uses["kv"] == 0 {
			t.Errorf("stats %+v", s)
		}
		status := set.Status()[0]
		if got := strings.Join(status.Notes, "; "); !strings.Contains(got, "asks for clock") || len(status.Granted) != 3 {
			t.Errorf("status %+v", status)
		}
	})
}

// TestLookupIsRefused shows what a guest gets: a server that was not granted, and a
// secret that was not.
func TestLookupIsRefused(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, h *host.Host) {
		t.Helper()
		s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a server was asked") }))
		t.Cleanup(s.Close)
		for want, change := range map[string]func(*httpcap.Grant){
			"refused (host)":   func(g *httpcap.Grant) { g.Hosts = []string{"tracker.example.com"} },
			"refused (secret)": func(g *httpcap.Grant) { g.Secrets = nil },
		} {
			grants := trackerGrants(s)
			web, _ := grants.Capability("http").(*httpcap.Grant)
			change(web)
			name := "lookup-" + want[9:10]
			set, err := plugins.Load(t.Context(), h, []plugins.Entry{{
				Name: name, Module: host.Spec{Path: lookup, Grants: grants}, Config: map[string]any{"url": s.URL + "/tickets/"},
			}})
			if err != nil {
				t.Fatal(err)
			}
			said := say(t, set, "What about OPS-7?")
			if !strings.Contains(said, "lookup_failed") || !strings.Contains(said, "code:denied") || !strings.Contains(said, want) {
				t.Errorf("the plugin says %s", said)
			}
			if stats := set.Stats()[name]; stats.Denied != 1 {
				t.Errorf("stats %+v", stats)
			}
		}
	})
}

// TestLookupWithoutGrants: it does not load, and the error has its reasons.
func TestLookupWithoutGrants(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, h *host.Host) {
		t.Helper()
		_, err := plugins.Load(t.Context(), h, []plugins.Entry{{Module: host.Spec{Path: lookup}}})
		want := `plugin "lookup" asks for http (it says: "To ask the tracker for tickets."), kv (it says: "To ask for each ticket once."); ` +
			`to let it, write grants: {http: {hosts: [api.example.com]}, kv: {path: plugins.db}}`
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v", err)
		}
	})
}

// TestOnlyUsersOfACapabilityImportIt: the SDK has a package for each capability, so that
// a guest which uses none loads without grants.
func TestOnlyUsersOfACapabilityImportIt(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"redact": "", "index": "", "guard": "", "admission": "",
		"summarizers": "host_error model_chat model_info", // which need no grant to be linked
		"lookup":      "host_error http_fetch http_headers http_status_code kv_get kv_set",
	} {
		b, err := os.ReadFile(filepath.Join("..", "testdata", "guests", name+".wasm"))
		if err != nil {
			t.Fatal(err)
		}
		in, err := host.Inspect(name, b)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, i := range in.Imports {
			if strings.HasPrefix(i.Name, "kv_") || strings.HasPrefix(i.Name, "http_") || strings.HasPrefix(i.Name, "model_") || i.Name == "host_error" {
				got = append(got, i.Name)
			}
		}
		slices.Sort(got) // the order is that of the linker
		if strings.Join(got, " ") != want {
			t.Errorf("%s imports %q, want %q", name, got, want)
		}
	}
}

// say fires a request that ends with text, and returns all that the plugin answers.
func say(t *testing.T, set *plugins.Set, text string) string {
	t.Helper()
	reply, err := set.Plugins()[0].OnPhase(t.Context(), &abi.Event{
		Phase:    abi.BeforeInference,
		Messages: []abi.Message{{ID: "m1", Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text(text)}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	out := ""
	for _, e := range reply.Effects {
		out += fmt.Sprintf("%s %s %v ", e.Type, e.EventType, e.Payload)
		if e.Context != nil {
			out += e.Context.Key + " " + e.Context.Content[0].Text
		}
	}
	return out
}
