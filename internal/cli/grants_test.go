package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/testskip"
)

// tokens were made up for these tests.
const (
	firstToken  = "tr-4f1c9be27d60"
	secondToken = "tr-b83a52e0917c"
)

// tickets is a tracker that remembers what it was sent.
type tickets struct {
	*httptest.Server

	mu    sync.Mutex
	heard []string
}

func newTickets(t *testing.T) *tickets {
	t.Helper()
	s := &tickets{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.heard = append(s.heard, r.URL.Path+" "+r.Header.Get("Authorization"))
		fmt.Fprint(w, "Queue is stuck. You sent "+r.Header.Get("Authorization"))
	}))
	t.Cleanup(s.Close)
	return s
}

// text is a config that lets lookup ask the tracker. %[1]s is the secret.
func (s *tickets) text(secret, kv string) string {
	at := s.Listener.Addr().String()
	return fmt.Sprintf(`plugins:
  - name: lookup
    module: $ROOT/testdata/guests/lookup.wasm
    config: {url: "http://%s/tickets/"}
    grants:
      log: true
      log_level: warn
      http: {hosts: ["%s"], private: [127.0.0.1], plain: true, per_minute: 5, timeout: 1s}
      secrets: {TRACKER: {%s, hosts: ["%s"], plain: true}}
      kv: {%s, mib: 1}
`, at, at, secret, at, kv)
}

func asks(t *testing.T, ticket string) string {
	t.Helper()
	return write(t, "s.json", []byte(`[{"role":"user","content":"What about `+ticket+`?"},{"role":"assistant","content":"hi"}]`))
}

// TestGrantsOfTheConfig runs the plugin lookup twice on one store, with a secret in a
// file that is replaced between two requests.
func TestGrantsOfTheConfig(t *testing.T) {
	t.Parallel()
	s := newTickets(t)
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	cfg := config(t, s.text("file: "+token, "path: "+filepath.Join(dir, "plugins.db")))
	put := func(value string) {
		if err := os.WriteFile(token, []byte(value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(firstToken)
	for _, ticket := range []string{"OPS-1", "OPS-1", "OPS-2"} {
		code, r, stderr := run(t, cfg, asks(t, ticket))
		if code != exit.OK {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		m := r.Modules[0]
		granted := "http (" + s.Listener.Addr().String() + "), kv (its own namespace), secrets (TRACKER), log"
		if got := strings.Join(m.Granted, ", "); got != granted {
			t.Errorf("granted %q", got)
		}
		if got := strings.Join(m.Notes, "; "); !strings.Contains(got, "is granted log and does not ask for it") || !strings.Contains(got, "asks for clock") {
			t.Errorf("notes %q", got)
		}
		if g := r.Guests[0]; g.KV == 0 || g.Denied != 0 {
			t.Errorf("guest %+v", g)
		}
		put(secondToken)
	}
	want := []string{"/tickets/OPS-1 Bearer " + firstToken, "/tickets/OPS-2 Bearer " + secondToken}
	if fmt.Sprint(s.heard) != fmt.Sprint(want) {
		t.Errorf("the tracker received %q", s.heard)
	}
	for _, format := range []string{"table", "json"} {
		_, stdout, stderr := mortise(t.Context(), "", "run", "-c", cfg, "-o", format, "--log-level", "debug", asks(t, "OPS-3"))
		if strings.Contains(stdout+stderr, firstToken) || strings.Contains(stdout+stderr, secondToken) {
			t.Error("a secret is in the report or the log")
		}
		if format == "table" && (!strings.Contains(stdout, "note: lookup asks for clock") || !strings.Contains(stdout, "  http  kv")) {
			t.Errorf("the table says\n%s", stdout)
		}
	}
}

// TestSecretOfTheEnvironment sets a variable, so it does not run in parallel.
func TestSecretOfTheEnvironment(t *testing.T) {
	s := newTickets(t)
	t.Setenv("MORTISE_TEST_TRACKER", firstToken)
	cfg := config(t, s.text("env: MORTISE_TEST_TRACKER", "memory: true"))
	if code, r, stderr := run(t, cfg, asks(t, "OPS-1")); code != exit.OK || r.Guests[0].HTTP != 1 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if fmt.Sprint(s.heard) != "[/tickets/OPS-1 Bearer "+firstToken+"]" {
		t.Errorf("the tracker received %q", s.heard)
	}
}

// TestSecretThatIsGone: the request fails, the error names the secret,
// and the run continues.
func TestSecretThatIsGone(t *testing.T) {
	t.Setenv("MORTISE_TEST_EMPTY", "")
	s := newTickets(t)
	cfg := config(t, s.text("env: MORTISE_TEST_EMPTY", "memory: true"))
	code, _, stderr := mortise(t.Context(), "", "run", "-c", cfg, "--pace", "0", asks(t, "OPS-1"))
	if code != exit.OK || !strings.Contains(stderr, "secret cannot be read") || !strings.Contains(stderr, "secret=TRACKER") || len(s.heard) != 0 {
		t.Errorf("exit code %d, the tracker received %q: %s", code, s.heard, stderr)
	}
}

func TestOneStoreForEachFile(t *testing.T) {
	t.Parallel()
	s := newTickets(t)
	dir := t.TempDir()
	one := s.text("env: PATH", "namespace: shared, path: "+filepath.Join(dir, "x", "..", "plugins.db"))
	two := strings.Replace(s.text("env: PATH", "read_only: true, namespace: shared, path: "+filepath.Join(dir, "plugins.db")), "plugins:\n  - name: lookup", "  - name: reader", 1)
	code, r, stderr := run(t, config(t, one+two), asks(t, "OPS-1"))
	if code != exit.OK || len(r.Guests) != 2 || r.Guests[0].Denied+r.Guests[1].Denied > 1 {
		t.Errorf("exit code %d, %+v: %s", code, r.Guests, stderr)
	}
	if got := strings.Join(r.Modules[1].Granted, ", "); !strings.Contains(got, "kv (shared, read-only)") {
		t.Errorf("granted %q", got)
	}
}

func TestBadGrants(t *testing.T) {
	t.Parallel()
	open := write(t, "open", []byte(firstToken))
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	session := write(t, "s.json", []byte(oneMessage))
	reach := "http: {hosts: [a.example]}, "
	for grants, says := range map[string]string{
		"htpp: {}":                              "htpp",
		"http: {}":                              `grants.http.hosts: is empty; name the hosts`,
		"http: {hosts: [a.example], hots: [b]}": "hots",
		"http: {hosts: [a.example], private: [10/8]}":              `grants.http.private[0]: "10/8" is not a range of addresses; write for example`,
		"http: {hosts: [a.example], redirects: -2}":                "grants.http.redirects: is -2",
		"http: {hosts: [a.example], per_minute: -1}":               "grants.http.per_minute: is -1; write a number from 1",
		"http: {hosts: [a.example], response_kib: 99999999999999}": "",
		"http: {hosts: [a.example], timeout: -1s}":                 `"-1s" is negative`,
		"http: {hosts: ['https://a.example']}":                     "http.Grant.Hosts[0]",
		"secrets: {A: {env: PATH, hosts: [a]}}":                    "grants.secrets: are of no use without http",
		reach + "secrets: {A: {value: hunter22, hosts: [a]}}":      `grants.secrets."A": value: a secret may not be in the config; name a variable with env`,
		reach + "secrets: {A: {value: hunter22, hots: [a]}}":       `there is no key "hots" in plugins[0].grants.secrets.A; did you mean hosts?`,
		reach + "secrets: {A: {hosts: [a]}}":                       "name either a variable with env, or a file with file",
		reach + "secrets: {A: {env: B, file: c, hosts: [a]}}":      "name either a variable with env, or a file with file",
		reach + "secrets: {A: {env: PATH}}":                        "hosts: is empty; name where the secret may be sent",
		reach + "secrets: {A: {env: MORTISE_NO_SUCH, hosts: [a]}}": `plugins[0] (x): grants.secrets."A": env: the environment has no variable "MORTISE_NO_SUCH"; set it`,
		reach + "secrets: {A: {file: gone, hosts: [a]}}":           "gone: no such file",
		reach + "secrets: {A: {file: ., hosts: [a]}}":              "is not a regular file",
		reach + "secrets: {A: {file: " + open + ", hosts: [a]}}":   "others can use the file (mode -rw-r--r--); use chmod 600",
		"kv: {}":                                       "grants.kv: name either a file with path, or write memory: true",
		"kv: {path: a.db, memory: true}":               "grants.kv: name either a file",
		"kv: {memory: true, mib: -1}":                  "grants.kv.mib: is -1",
		"kv: {path: no/such/folder/a.db}":              "grants.kv: sqlitekv: ",
		"files: [{host: .}]":                           "grants.files[0]: host or guest is missing",
		"files: [{host: ., guest: data}]":              "fs.Grant.Mounts[0].Guest",
		"files: [{host: ., guest: /d, mib: 99999999}]": "grants.files[0].mib: is 99999999",
		"log: true, log_level: loud":                   `grants.log_level: "loud" must be debug, info, warn or error`,
		"log_level: warn":                              "grants.log_level: is of no use without log",
	} {
		t.Run(grants, func(t *testing.T) {
			t.Parallel()
			if runtime.GOOS == "windows" && strings.Contains(says, "chmod") {
				testskip.Skip(t, "modes of files say nothing on Windows")
			}
			cfg := config(t, "plugins: [{name: x, module: $ROOT/testdata/guests/redact.wasm, grants: {"+grants+"}}]\n")
			code, _, stderr := mortise(t.Context(), "", "run", "-q", "-c", cfg, session)
			if (code != exit.Config && code != exit.Module) || !strings.Contains(stderr, says) {
				t.Errorf("exit code %d: %q does not say %q", code, stderr, says)
			}
			if strings.Contains(stderr, "hunter22") {
				t.Error("the value of a secret is shown")
			}
		})
	}
	cfg := config(t, "compaction: {summarizer: {module: a.wasm, grants: {kv: {}}}}\n")
	if code, _, stderr := mortise(t.Context(), "", "run", "-q", "-c", cfg, session); code != exit.Config || !strings.Contains(stderr, "compaction.summarizer: grants.kv: ") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// TestDocumentsHaveConfigsThatAreRead takes the configs out of the documents.
func TestDocumentsHaveConfigsThatAreRead(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"docs/capabilities.md", "docs/embedding.md", "examples/plugins/lookup/README.md"} {
		text, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(string(text), "```yaml\n")
		for _, part := range parts[1:] {
			text, _, _ := strings.Cut(part, "```")
			// A config that is right is read before the session is looked for.
			code, _, stderr := mortise(t.Context(), "", "run", "-c", config(t, text), "gone.jsonl")
			if code != exit.Usage {
				t.Errorf("%s: exit code %d: %s", name, code, stderr)
			}
		}
		if len(parts) < 2 {
			t.Errorf("%s has no config", name)
		}
	}
}

// TestMendOfAMissingGrant does what the error says, and the module loads.
func TestMendOfAMissingGrant(t *testing.T) {
	t.Parallel()
	text := "plugins: [{name: x, module: $ROOT/testdata/guests/lookup.wasm, config: {url: 'https://a.example/'}%s}]\n"
	session := write(t, "s.json", []byte(oneMessage))
	_, _, stderr := mortise(t.Context(), "", "run", "-q", "-c", config(t, fmt.Sprintf(text, "")), session)
	_, hint, _ := strings.Cut(stderr, "write grants: ")
	hint, _, found := strings.Cut(hint, " (in Go: ")
	if !found {
		t.Fatalf("there is no hint in %q", stderr)
	}
	code, r, stderr := run(t, config(t, fmt.Sprintf(text, ", grants: "+hint)), session)
	if code != exit.OK || r.Modules[0].State != "loaded" {
		t.Errorf("exit code %d with grants %s: %s", code, hint, stderr)
	}
}
