package e2e_test

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/llm/providertest"
)

// command runs the command in a process of its own.
func command(ctx context.Context, t *testing.T, env []string, args ...string) (code int, out, log string) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(ctx, self) //nolint:gosec // this binary
	cmd.Env = append(append(os.Environ(), commandArgs+"="+strings.Join(args, "\n")), env...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// TestDoctor: what is wrong with the services and the machine is found, named and hinted at; nothing is made, and
// no secret is printed.
func TestDoctor(t *testing.T) {
	t.Parallel()
	testskip.Plain(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	w := newWorldOf(t, small+"  listen: 127.0.0.1:0\n  admin: 127.0.0.1:0\nstore: new.db\n", reply)
	guest, err := os.ReadFile("../../testdata/guests/redact.wasm")
	must(t, err)
	must(t, os.WriteFile(w.path("redact.wasm"), guest, 0o600))
	code, out, log := command(ctx, t, nil, "doctor", "--config", w.path("mortise.yaml"))
	if code != 0 || strings.Contains(out, "fail") {
		t.Errorf("%d %s%s", code, out, log)
	}
	for _, want := range []string{"new.db does not exist yet", "takes the key and has " + model, "mcp.works", "2 tools", "127.0.0.1:0 is free", "may be open", "cache_dir"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in %s", want, out)
		}
	}
	if _, err := os.Stat(w.path("new.db")); err == nil {
		t.Error("it made the store")
	}
	if bills := w.provider.Bills(); len(bills) != 0 {
		t.Errorf("it paid: %+v", bills)
	}

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	must(t, os.WriteFile(w.path("key"), []byte("sk-wrong-0123456789abcdef"), 0o600))
	must(t, os.WriteFile(w.path("not-a-folder"), nil, 0o600))
	w.configure(t, strings.NewReplacer("provider: anthropic, name: $MODEL", "provider: openai, name: nothing",
		"command: [\"$SELF\"]", "command: [\"false\"], start_timeout: 20s").Replace(small)+
		"  admin: "+taken.Addr().String()+"\n  listen: 127.0.0.1:0\nstore: not-a-folder/x.db\n")
	code, out, _ = command(ctx, t, nil, "doctor", "--json", "--config", w.path("mortise.yaml"))
	var got struct {
		Checks []struct{ Check, State, Detail, Hint string }
	}
	must(t, json.Unmarshal([]byte(out), &got))
	states := map[string]string{}
	for _, c := range got.Checks {
		states[c.Check] = c.State
		if c.State == "fail" && c.Detail == "" {
			t.Errorf("%+v", c)
		}
	}
	want := map[string]string{"config": "ok", "models.main": "fail", "mcp.works": "fail", "serve.admin": "fail", "serve.listen": "ok", "store": "fail"}
	for check, state := range want {
		if states[check] != state {
			t.Errorf("%s is %q, want %q", check, states[check], state)
		}
	}
	if code != 1 || strings.Contains(out, "sk-wrong") {
		t.Errorf("%d %s", code, out)
	}
	if found, err := filepath.Glob(w.path(".mortise-doctor-*")); err != nil || len(found) > 0 {
		t.Errorf("it left %v", found)
	}
}

// TestDoctor_servers: on a server, the store that was never used is not made, one that was used is read, and a server that is gone
// is an error.
func TestDoctor_servers(t *testing.T) {
	t.Parallel()
	testskip.Plain(t)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, gone.Close())
	for name, c := range map[string]struct {
		url  func(*testing.T) string
		gone string
	}{
		"PostgreSQL": {postgres, "postgres://mortise:sk-secret-0123456789@" + gone.Addr().String() + "/mortise"},
		"NATS":       {jetstream, "nats://mortise:sk-secret-0123456789@" + gone.Addr().String() + "/runs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			w := newWorldWith(t, options{"version: 1\nmodels:\n  main: {provider: anthropic, name: $MODEL, base_url: \"$URL\", key: {file: key}, max_tokens: 4000}\n" +
				"agents:\n  worker: {model: main}\nserve: {listen: \"127.0.0.1:0\", admin: \"127.0.0.1:0\"}\n", reply, c.url(t), 1})
			for _, want := range []string{"has nothing of mortise yet", "has nothing of mortise yet", "was used"} {
				if want == "was used" {
					w.start(t)
					w.stop(t)
				}
				code, out, log := command(ctx, t, nil, "doctor", "--config", w.path("mortise.yaml"), "--store", w.store)
				if code != 0 || strings.Contains(out, "has nothing of mortise yet") != (want == "has nothing of mortise yet") {
					t.Errorf("want that the store %s: %d %s%s", want, code, out, log)
				}
			}
			code, out, log := command(ctx, t, nil, "doctor", "--config", w.path("mortise.yaml"), "--store", c.gone)
			if code != 1 || !strings.Contains(out, "see that the server runs") || strings.Contains(out+log, "sk-secret") {
				t.Errorf("without a server: %d %s%s", code, out, log)
			}
		})
	}
}

// TestStatus: a short page of a running server, and a clear error without a token, with a wrong one, and without a server.
func TestStatus(t *testing.T) {
	t.Parallel()
	testskip.Plain(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	w := newWorldOf(t, small+"  tokens: [{name: ops, file: token, scopes: [admin]}]\nstore: mortise.db\n", func(providertest.Query) providertest.Answer { return providertest.Answer{} })
	guest, err := os.ReadFile("../../testdata/guests/redact.wasm")
	must(t, err)
	must(t, os.WriteFile(w.path("redact.wasm"), guest, 0o600))
	const token = "token-one-0123456789"
	must(t, os.WriteFile(w.path("token"), []byte(token), 0o600))
	w.start(t)
	url := w.at(true)
	for _, c := range []struct {
		env, args []string
		code      int
		want      string
	}{
		{nil, []string{"--url", url}, 1, "--token-env"},
		{[]string{"OPS=wrong-0123456789abcd"}, []string{"--url", url, "--token-env", "OPS"}, 1, "does not know the token"},
		{nil, []string{"--url", url, "--token-env", "NO_SUCH_VARIABLE"}, 2, "NO_SUCH_VARIABLE"},
		{nil, []string{"--url", "localhost:1"}, 2, "--url"},
		{nil, []string{"--url", "http://127.0.0.1:1"}, 1, "no answer"},
		{[]string{"OPS=" + token}, []string{"--url", w.at(false), "--token-env", "OPS"}, 1, "another port"},
		{[]string{"OPS=" + token}, []string{"--url", url, "--token-env", "OPS"}, 0, "0 executing here, 0 queued, 0 dead letters"},
		{[]string{"OPS=" + token}, []string{"--url", url, "--token-env", "OPS"}, 0, "store sqlite"},
		{[]string{"OPS=" + token}, []string{"--url", url, "--token-env", "OPS"}, 0, "plugin index"},
		{[]string{"OPS=" + token}, []string{"--url", url, "--token-env", "OPS"}, 0, "summarizer summarizer"},
		{[]string{"OPS=" + token}, []string{"--url", url, "--token-env", "OPS"}, 0, "mcp works"},
		{[]string{"OPS=" + token}, []string{"--url", url, "--token-env", "OPS", "--json"}, 0, `"uptime_seconds"`},
	} {
		code, out, log := command(ctx, t, c.env, append([]string{"status"}, c.args...)...)
		if code != c.code || !strings.Contains(out+log, c.want) || strings.Contains(out+log, token) {
			t.Errorf("%q: %d %s%s, want %d %s", c.args, code, out, log, c.code, c.want)
		}
	}
	code, out, _ := command(ctx, t, nil, "doctor", "--json", "--config", w.path("mortise.yaml"), "--store", w.path("mortise.db"), "--listen", "127.0.0.1:0", "--admin", strings.TrimPrefix(url, "http://"))
	for _, want := range []string{"another process uses the file", "in use"} {
		if code != 1 || !strings.Contains(out, want) {
			t.Errorf("doctor alongside a server: %d %s, want %s", code, out, want)
		}
	}
	w.stop(t)
}
