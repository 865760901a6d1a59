package cli_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/exit"
)

// compacted is a session of an agent that reads n files, compacts, and edits every
// second one.
type compacted struct {
	user, read, compact, edit func(n int, path string) string
}

func (c compacted) log(n int) string {
	var b strings.Builder
	b.WriteString(c.user(0, "Read the files, and repair the pump."))
	for i := range n {
		b.WriteString(c.read(i, fmt.Sprintf("/w/src/pump%02d.go", i)))
	}
	b.WriteString(c.compact(n, "Files modified: none. The user wants /w/src/pump00.go repaired."))
	for i := 0; i < n; i += 2 {
		b.WriteString(c.edit(n+1+i, fmt.Sprintf("/w/src/pump%02d.go", i)))
	}
	return b.String()
}

func claudeLog() compacted {
	use := func(name string) func(int, string) string {
		return func(n int, path string) string {
			return fmt.Sprintf(`{"type":"assistant","uuid":"a%d","parentUuid":"s","sessionId":"S","message":{"role":"assistant","content":[{"type":"tool_use","id":"t%[1]d","name":%q,"input":{"file_path":%q}}]}}`+"\n"+
				`{"type":"user","uuid":"r%[1]d","parentUuid":"a%[1]d","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%[1]d","content":"package main"}]}}`+"\n", n, name, path)
		}
	}
	return compacted{
		user: func(_ int, text string) string {
			return fmt.Sprintf(`{"type":"user","uuid":"u","sessionId":"S","message":{"role":"user","content":%q}}`+"\n", text)
		},
		read: use("Read"), edit: use("Edit"),
		compact: func(_ int, text string) string {
			return `{"type":"system","subtype":"compact_boundary","uuid":"b","sessionId":"S"}` + "\n" +
				fmt.Sprintf(`{"type":"user","uuid":"s","parentUuid":"b","isCompactSummary":true,"message":{"role":"user","content":%q}}`+"\n", text)
		},
	}
}

func codexLog() compacted {
	item := func(format string, args ...any) string {
		return `{"timestamp":"2026-01-02T03:04:05Z","type":"response_item","payload":` + fmt.Sprintf(format, args...) + "}\n"
	}
	call := func(command string) func(int, string) string {
		return func(n int, path string) string {
			arguments := fmt.Sprintf(`{"command":["bash","-lc",%q]}`, command+" "+path)
			return item(`{"type":"function_call","name":"shell","call_id":"t%d","arguments":%q}`, n, arguments) +
				item(`{"type":"function_call_output","call_id":"t%d","output":"package main"}`, n)
		}
	}
	return compacted{
		user: func(_ int, text string) string {
			return item(`{"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}`, text)
		},
		read: call("cat"), edit: call("gofmt -w"),
		compact: func(_ int, text string) string {
			return fmt.Sprintf(`{"timestamp":"2026-01-02T03:04:05Z","type":"compacted","payload":{"message":%q}}`+"\n", text)
		},
	}
}

func piLog() compacted {
	message := func(format string, args ...any) string {
		return `{"type":"message","message":` + fmt.Sprintf(format, args...) + "}\n"
	}
	call := func(name string) func(int, string) string {
		return func(n int, path string) string {
			return message(`{"role":"assistant","content":[{"type":"toolCall","id":"t%d","name":%q,"arguments":{"path":%q}}]}`, n, name, path) +
				message(`{"role":"toolResult","toolCallId":"t%d","toolName":%q,"content":[{"type":"text","text":"package main"}]}`, n, name)
		}
	}
	return compacted{
		user: func(_ int, text string) string {
			return `{"type":"session","id":"S"}` + "\n" + message(`{"role":"user","content":%q}`, text)
		},
		read: call("read"), edit: call("edit"),
		compact: func(_ int, text string) string {
			return fmt.Sprintf(`{"type":"compaction","summary":%q,"tokensBefore":9000}`+"\n", text)
		},
	}
}

func TestCompactEvalFuture(t *testing.T) {
	t.Parallel()
	for name, log := range map[string]compacted{"claude": claudeLog(), "codex": codexLog(), "pi": piLog()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			session := write(t, name+".jsonl", []byte(log.log(40)))
			args := []string{"compact", "eval", "--future", "--quiet", "--policies", "baselines", "--sizes", "vendor,50%", session}
			code, stdout, stderr := mortise(t.Context(), "", append(args, "--json")...)
			if code != exit.OK || stderr != "" {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			var r struct {
				Schema      string
				Compactions int
				Rows        []struct {
					Contender, Size                 string
					Chain, Facts                    int
					Strict                          struct{ Value, Low, High float64 }
					FirstRequest, Whole             int
					Modified                        struct{ Touched int }
					FalseFiles, FalseWords, Unknown struct{ Wrong int }
				}
			}
			if err := json.Unmarshal([]byte(stdout), &r); err != nil {
				t.Fatal(err)
			}
			if r.Schema != "mortise.compact_future.v1" || r.Compactions != 1 || len(r.Rows) != 2+4*2*2 {
				t.Fatalf("%s, %d compactions, %d rows", r.Schema, r.Compactions, len(r.Rows))
			}
			if v := r.Rows[0]; v.Contender != "vendor" || v.Facts != 20 || v.Strict.Value != 1.0/20 || v.FalseFiles.Wrong != 0 {
				t.Errorf("%+v", v)
			}
			if v := r.Rows[1]; v.Contender != "vendor, repaired" || v.Strict.Value <= r.Rows[0].Strict.Value || v.FalseFiles.Wrong+v.FalseWords.Wrong != 0 {
				t.Errorf("%+v", v)
			}
			for _, row := range r.Rows {
				if row.Contender == "index-own" && row.Size == "50%" && row.Chain == 1 && row.Strict.Value != 1 {
					t.Errorf("%+v", row)
				}
			}
			code, stdout, stderr = mortise(t.Context(), "", args...)
			for _, want := range []string{"1 compaction, 20 facts needed later", "at the vendor's own size", "at 50%", "chain of 8", "half-half", "false files", "0.05 (0.05)  "} {
				if code != exit.OK || !strings.Contains(stdout, want) {
					t.Errorf("exit code %d, the table lacks %q:\n%s%s", code, want, stdout, stderr)
				}
			}
		})
	}
}

func TestCompactEvalFutureErrors(t *testing.T) {
	t.Parallel()
	whole := write(t, "whole.jsonl", []byte(claudeLog().log(40)))
	few := write(t, "few.jsonl", []byte(claudeLog().log(4)))
	none := write(t, "notes.json", []byte(notes))
	encrypted := write(t, "rollout.jsonl", []byte(strings.Replace(codexLog().log(40), "Files modified: none. The user wants /w/src/pump00.go repaired.", "", 1)))
	end, _, _ := strings.Cut(claudeLog().log(40), `{"type":"assistant","uuid":"a41"`)
	last := write(t, "last.jsonl", []byte(end))
	for name, tc := range map[string]struct {
		args []string
		code exit.Code
		want string
	}{
		"no compaction":      {[]string{none}, exit.Session, "session notes.json: no compaction in it; found are 4 messages in the format openai. Compactions are known in logs of Claude Code, Codex, pi, OpenCode and OpenHands"},
		"few facts":          {[]string{few}, exit.Session, "session few.jsonl: only 2 facts are needed after the first of 1 compactions, at least 8"},
		"encrypted":          {[]string{encrypted}, exit.Session, "session rollout.jsonl: the first of 1 compactions has no summary in the log"},
		"nothing follows":    {[]string{last}, exit.Session, "session last.jsonl: nothing continues from the first of 1 compactions"},
		"a folder with none": {[]string{filepath.Dir(none)}, exit.Session, "notes.json: no compaction in it"},
		"several":            {[]string{none, few}, exit.Session, "few.jsonl: only 2 facts"},
		"another flag":       {[]string{"--probes", "p", whole}, exit.Usage, "--probes does not fit --future"},
		"a size":             {[]string{"--sizes", "2000", whole}, exit.Usage, `size "2000": write vendor, or a share`},
		"a chain":            {[]string{"--chain", "0", whole}, exit.Usage, `--chain "0"`},
		"an unknown policy":  {[]string{"--policies", "nothing", whole}, exit.Config, "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"compact", "eval", "--future", "--quiet", "--policies", "baselines"}, tc.args...)
			code, stdout, stderr := mortise(t.Context(), "", args...)
			if stdout != "" || !strings.Contains(stderr, tc.want) || tc.code != exit.Config && code != tc.code || code == exit.OK {
				t.Errorf("exit code %d, want %d: %s\nwant %q", code, tc.code, stderr, tc.want)
			}
		})
	}
	code, stdout, stderr := mortise(t.Context(), "", "compact", "eval", "--future", "--policies", "last-n", "--sizes", "vendor", none, whole)
	if code != exit.OK || !strings.Contains(stderr, "left out: notes.json: no compaction in it") || !strings.Contains(stdout, "1 compaction,") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}
