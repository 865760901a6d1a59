//go:build unix

package cli_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/creack/pty"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/cli"
	"github.com/mortise-dev/mortise/internal/cli/links"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/llm/providertest"
)

// screen is a terminal and the user before it.
type screen struct {
	tty  *os.File // the program's side
	user *os.File

	mu    sync.Mutex
	text  strings.Builder
	more  chan struct{}
	ended chan struct{}
}

func newScreen(t *testing.T) *screen {
	t.Helper()
	user, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{tty: tty, user: user, more: make(chan struct{}, 1), ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		for buf := make([]byte, 4096); ; {
			n, err := user.Read(buf)
			s.mu.Lock()
			s.text.Write(buf[:n])
			s.mu.Unlock()
			select {
			case s.more <- struct{}{}:
			default:
			}
			if err != nil {
				return // the program's side is closed
			}
		}
	}()
	return s
}

// shows returns what is on the screen.
func (s *screen) shows() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// await waits until the screen shows a text.
func (s *screen) await(t *testing.T, text string) {
	t.Helper()
	late := time.After(2 * time.Minute)
	for !strings.Contains(s.shows(), text) {
		select {
		case <-s.more:
		case <-late:
			t.Fatalf("the screen has no %q: %q", text, s.shows())
		}
	}
}

// types writes a line as the user does.
func (s *screen) types(t *testing.T, line string) {
	t.Helper()
	if _, err := s.user.WriteString(line + "\n"); err != nil {
		t.Fatal(err)
	}
}

// run runs the command on the terminal. The code arrives when it has ended.
func (s *screen) run(ctx context.Context, args ...string) <-chan exit.Code {
	code := make(chan exit.Code, 1)
	go func() { code <- cli.Main(ctx, args, cli.Streams{In: s.tty, Out: s.tty, Err: s.tty}, links.All()) }()
	return code
}

// end closes the terminal and returns what it showed.
func (s *screen) end() string {
	_ = s.tty.Close()
	<-s.ended
	_ = s.user.Close()
	return s.shows()
}

// TestRun_asks: on a terminal the user reads the call with its arguments, and allows it with an answer, or denies it with a reason
// that the model reads.
func TestRun_asks(t *testing.T) {
	t.Parallel()
	p := newProvider(t, pays)
	cfg := p.config(t, "")
	for answer, want := range map[string]string{
		"a 12":               "The teller said: paid 12 with key true",
		"allow":              "The teller said: paid <nil> with key true",
		"all":                "The teller said: paid <nil> with key true",
		"d too much money":   "The teller said: Denied: too much money",
		"\nwhat?\n\x1b[A\nn": "The teller said: Denied: the user denied the call",
	} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			s := newScreen(t)
			code := s.run(t.Context(), "run", "-c", cfg, "Pay Ada.")
			s.await(t, "all = allow this and all further calls")
			if text := s.shows(); !strings.Contains(text, "approve? tool pay") || !strings.Contains(text, `"note": "<fee> & \u001b[2J\u202ereversed"`) ||
				!strings.Contains(text, "reason: how much?") {
				t.Errorf("the question is %q", text)
			}
			s.types(t, answer)
			if got := <-code; got != exit.OK {
				t.Errorf("exit code %d", got)
			}
			if text := s.end(); !strings.Contains(text, want) {
				t.Errorf("no %q: %q", want, text)
			}
		})
	}
}

// TestRun_askInterrupted: an interrupt ends a run that waits for the user.
func TestRun_askInterrupted(t *testing.T) {
	t.Parallel()
	p := newProvider(t, pays)
	ctx, cancel := context.WithCancel(t.Context())
	s := newScreen(t)
	code := s.run(ctx, "run", "-c", p.config(t, ""), "Pay Ada.")
	s.await(t, "all = allow")
	cancel()
	if got := <-code; got != exit.Interrupted {
		t.Errorf("exit code %d", got)
	}
	s.types(t, "a") // nothing reads it but the read that was left behind
	if text := s.end(); strings.Contains(text, "paid") || len(p.queries()) != 1 {
		t.Errorf("%d requests: %q", len(p.queries()), text)
	}
}

// TestRun_hostile: what a model writes, calls and passes cannot drive the terminal, whichever part of the screen shows it.
func TestRun_hostile(t *testing.T) {
	t.Parallel()
	const evil = "\x1b]0;owned\a\x1b[2J\u009b31m\rover\b\b\x7f\u202eright\u2066\u2028"
	p := newProvider(t, func(q providertest.Query) providertest.Answer {
		if m := last(q); m.Role == abi.RoleTool {
			return said("done %s end", evil)
		}
		return providertest.Answer{
			Content: []abi.ContentBlock{abi.Text("text " + evil + "\n")},
			Calls: []abi.ToolCall{
				{ID: "c1", Name: "pay" + evil, Arguments: map[string]any{"a" + evil: evil}},
				{ID: "c2", Name: "pay", Arguments: map[string]any{"a" + evil: evil}},
				{ID: "c3", Name: "note", Arguments: evil},
			},
		}
	})
	cfg := p.config(t, "")
	const shown = `done \x1b]0;owned\a\x1b[2J\u009b31m\rover\b\b\u007f\u202eright\u2066\u2028 end`
	for flag, want := range map[string]string{"--log-level=info": shown, "--json": `\u009b31m`} {
		s := newScreen(t)
		code := s.run(t.Context(), "run", flag, "-c", cfg, "Pay "+evil)
		s.await(t, "all = allow")
		s.types(t, `a "paid"`)
		if got := <-code; got != exit.OK {
			t.Errorf("%s: exit code %d", flag, got)
		}
		text := strings.ReplaceAll(s.end(), "\r\n", "\n") // the terminal makes \r\n of \n
		for i, r := range text {
			if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl) {
				t.Fatalf("%s: %U at %d: %q", flag, r, i, text)
			}
		}
		// The log is another stream, which may come between two pieces of a text, on a line of its own.
		if text = regexp.MustCompile(`\n?time=\S+ level=INFO [^\n]*\n`).ReplaceAllString(text, ""); !strings.Contains(text, want) {
			t.Errorf("%s: no %q in %q", flag, want, text)
		}
	}
}

// TestRun_signal: SIGINT ends a process whose model does not answer, and the thread continues after that, as it does after SIGKILL.
func TestRun_signal(t *testing.T) {
	t.Parallel()
	p := newProvider(t, func(q providertest.Query) providertest.Answer {
		asked := 0
		for _, m := range q.Messages {
			asked += strings.Count(m.Text(), "Speak.")
		}
		a := said("I read that %d times. %s", asked, strings.Repeat("word ", 100))
		if !strings.Contains(last(q).Text(), "go on") {
			a.Fault = &providertest.Fault{CutAfter: 5, Hang: true}
		}
		return a
	})
	cfg, store := p.config(t, "serve: {lease: 5s}"), filepath.Join(t.TempDir(), "mortise.db")
	args := []string{"run", "-c", cfg, "--store", store, "--thread", "t1"}
	asked := 0
	for signal, want := range map[syscall.Signal]int{syscall.SIGINT: int(exit.Interrupted), syscall.SIGKILL: -1} {
		asked++
		s := newScreen(t)
		cmd := child(t, t.TempDir(), append(args, "Speak.")...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = s.tty, s.tty, s.tty
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		s.await(t, "word")
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("%s: exit code %d", signal, got)
		}
		s.end()
		code, stdout, stderr := mortise(t.Context(), "", append(args, "go on")...)
		if code != exit.OK || !strings.Contains(stdout, fmt.Sprintf("I read that %d times.", asked)) {
			t.Errorf("after %s: exit code %d, %q: %s", signal, code, stdout, stderr)
		}
	}
}

// TestRun_environment: in a folder without a config, the environment selects the model and its address; without a key the command
// prints a hint.
func TestRun_environment(t *testing.T) {
	t.Parallel()
	p := newProvider(t, func(q providertest.Query) providertest.Answer { return said("%s heard %s", q.API, last(q).Text()) })
	session := filepath.Join(root(t), "examples", "sessions", "metering.jsonl")
	for name, tc := range map[string]struct {
		env    []string
		args   []string
		code   exit.Code
		stdout string
		stderr string
	}{
		"anthropic": {
			[]string{"ANTHROPIC_API_KEY=" + p.Key(), "ANTHROPIC_BASE_URL=" + p.URL()},
			[]string{"run", "hello"},
			exit.OK, "anthropic.messages heard hello", "model claude-sonnet-4-5 of anthropic at http://127.0.0.1",
		},
		"openai": {
			[]string{"OPENAI_API_KEY=" + p.Key(), "OPENAI_BASE_URL=" + p.URL() + "/v1"},
			[]string{"run", "hello"},
			exit.OK, "openai.chat heard hello", "model gpt-5 of openai-chat",
		},
		"by model": {
			[]string{"ANTHROPIC_API_KEY=x", "OPENAI_API_KEY=" + p.Key(), "OPENAI_BASE_URL=" + p.URL() + "/v1"},
			[]string{"run", "--model", "gpt-4.1", "hello"},
			exit.OK, "openai.chat heard hello", "model gpt-4.1",
		},
		"local without a model": {
			[]string{"OPENAI_BASE_URL=" + p.URL() + "/v1"},
			[]string{"run", "hello"},
			exit.Usage, "", "--model: is missing; name a model of the server at http://127.0.0.1",
		},
		"wrong key": {
			[]string{"ANTHROPIC_API_KEY=wrong", "ANTHROPIC_BASE_URL=" + p.URL()},
			[]string{"run", "hello"},
			exit.Run, "", "the run failed: ",
		},
		"no key":    {nil, []string{"run", "hello"}, exit.Config, "", "export ANTHROPIC_API_KEY="},
		"recording": {nil, []string{"run", "--quiet", session}, exit.OK, "summarizers/ledger", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := child(t, t.TempDir(), tc.args...)
			for _, v := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "MORTISE_CONFIG", "MORTISE_STORE"} {
				cmd.Env = append(cmd.Env, v+"=")
			}
			cmd.Env = append(cmd.Env, tc.env...)
			var stdout, stderr strings.Builder
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			_ = cmd.Run()
			if got := exit.Code(cmd.ProcessState.ExitCode()); got != tc.code || !strings.Contains(stdout.String(), tc.stdout) || !strings.Contains(stderr.String(), tc.stderr) {
				t.Errorf("exit code %d, %q: %s", got, stdout.String(), stderr.String())
			}
		})
	}
}
