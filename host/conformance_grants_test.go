package host_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/fs"
)

// conformMounts runs the guests of go-sdk that read and write below /mnt.
func conformMounts(t *testing.T, e string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "test.txt")
	if err := os.WriteFile(file, []byte("hello world!"), 0o600); err != nil {
		t.Fatal(err)
	}
	// These open for writing what they read.
	for _, name := range []string{"fs", "fs_std"} {
		m := load(t, e, host.Spec{Path: peer(t, name), Grants: host.Grants{Capabilities: []host.Capability{&fs.Grant{Mounts: []fs.Mount{{Host: dir, Guest: "/mnt", Writable: true}}}}}})
		for range 2 {
			call(t, m, "run_test", "", "hello world!")
		}
	}
	grants := host.Grants{Config: map[string]string{"path": "/mnt/test.txt"}, Capabilities: []host.Capability{&fs.Grant{Mounts: []fs.Mount{{Host: dir, Guest: "/mnt"}}}}}
	m := load(t, e, host.Spec{Path: peer(t, "read_write"), Grants: grants})
	call(t, m, "try_read", "", "hello world!")
	_, err := m.Call(t.Context(), "try_write", []byte("hello hello!"))
	if err == nil || !strings.Contains(err.Error(), "Failed to write file") {
		t.Errorf("written to a folder that is read-only: %v", err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "hello world!" {
		t.Errorf("the file holds %q, %v", b, err)
	}
	grants.Capabilities = []host.Capability{&fs.Grant{Mounts: []fs.Mount{{Host: dir, Guest: "/mnt", Writable: true}}}}
	m = load(t, e, host.Spec{Path: peer(t, "read_write"), Grants: grants})
	if _, err := m.Call(t.Context(), "try_write", []byte("hello hello!")); err != nil {
		t.Errorf("try_write: %v", err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "hello world!hello hello!" { // it appends
		t.Errorf("the file holds %q, %v", b, err)
	}
}

// conformFunctions runs the guests of go-sdk that import functions of an embedder.
func conformFunctions(t *testing.T, e string) {
	t.Helper()
	one, two := []host.ValueType{host.I64}, []host.ValueType{host.I64, host.I64}
	message := func(prefix string) func(context.Context, *host.Caller, []uint64) error {
		return func(_ context.Context, c *host.Caller, stack []uint64) error {
			text, err := c.Read(stack[0])
			if err == nil {
				stack[0], err = c.Write(append([]byte(prefix), text...))
			}
			return err
		}
	}
	grants := host.Grants{Functions: []host.Function{
		{Name: "mult", Params: two, Results: one, Call: func(_ context.Context, _ *host.Caller, stack []uint64) error {
			stack[0] = uint64(uint32(stack[0]) * uint32(stack[1]))
			return nil
		}},
		{Module: "host", Name: "to_upper", Params: one, Results: one, Call: func(_ context.Context, c *host.Caller, stack []uint64) error {
			text, err := c.Read(stack[0])
			if err == nil {
				stack[0], err = c.Write(bytes.ToUpper(text))
			}
			return err
		}},
		{Name: "hostGreenMessage", Params: one, Results: one, Call: message("green: ")},
		{Name: "hostPurpleMessage", Params: one, Results: one, Call: message("purple: ")},
	}}
	m := func(name string) *host.Module { return load(t, e, host.Spec{Path: peer(t, name), Grants: grants}) }
	for range 2 {
		call(t, m("host"), "run_test", "", "42 x 2 = 84")
		call(t, m("host_memory"), "run_test", "Frodo", "HELLO FRODO!")
		call(t, m("host_multiple"), "say_green", "John Doe", "green: 🫱 Hey from say_green John Doe")
		call(t, m("host_multiple"), "say_purple", "Jane Doe", "purple: 👋 Hello from say_purple Jane Doe")
	}
}

// conformHTTP runs the guests of go-sdk that make requests. One of them asks a
// public site, and is given the address of a server here in its place.
func conformHTTP(t *testing.T, e string) {
	t.Helper()
	var asked atomic.Value
	port, grant := tlsServer(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.Method + " " + r.URL.String())
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, `{"id": 1}`)
	})
	public := "https://jsonplaceholder.typicode.com/todos/1"
	here := "https://example.com:" + port + "/"
	here += strings.Repeat("x", len(public)-len(here)) // the same length, so that the module stays valid
	bin, err := os.ReadFile(peer(t, "http"))
	if err != nil || !bytes.Contains(bin, []byte(public)) {
		t.Fatalf("the guest http does not ask %s: %v", public, err)
	}
	bin = bytes.ReplaceAll(bin, []byte(public), []byte(here))
	m := load(t, e, host.Spec{Name: "http", Wasm: bin, Grants: host.Grants{Capabilities: []host.Capability{grant}}})
	call(t, m, "run_test", "", `{"id": 1}`)
	if want := "GET " + strings.TrimPrefix(here, "https://example.com:"+port); asked.Load() != want {
		t.Errorf("asked for %q, not %q", asked.Load(), want)
	}
	// Without a grant of that host.
	_, err = load(t, e, host.Spec{Path: peer(t, "http"), Grants: host.Grants{Capabilities: []host.Capability{grant}}}).Call(t.Context(), "run_test", nil)
	wantFault(t, err, host.TrapDenied, "http_request: "+public+": refused (host)")

	in := `{"url":"https://example.com:` + port + `"}`
	call(t, load(t, e, host.Spec{Path: peer(t, "http_headers"), Grants: host.Grants{Capabilities: []host.Capability{grant}}}), "http_get", in, "{}")
	grant.ResponseHeaders = true
	out, err := load(t, e, host.Spec{Path: peer(t, "http_headers"), Grants: host.Grants{Capabilities: []host.Capability{grant}}}).Call(t.Context(), "http_get", []byte(in))
	if err != nil || !strings.Contains(string(out), `"content-type":"text/html; charset=utf-8"`) {
		t.Errorf("%s, %v", out, err)
	}
}
