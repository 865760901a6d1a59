package install_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/hook/install"
)

const (
	client  = "/opt/mortise/mortise-hook"
	profile = "/home/u/.local/state/mortise/hook/abc"
)

func agent(t *testing.T, name string) *install.Agent {
	t.Helper()
	a, err := install.AgentOf(name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func entriesOf(a *install.Agent) ([]install.Entry, *regexp.Regexp) {
	var events []string
	for name := range a.Dialect.Events {
		events = append(events, name)
	}
	return install.Entries(a.Dialect, client, profile, events, func(e *hook.EventSpec) bool { return e.Gate }), install.Mark(profile, a.Dialect.Name)
}

// files are settings that people have. The second value are agents that take them.
func files() map[string]struct {
	text string
	only string
} {
	return map[string]struct {
		text string
		only string
	}{
		"none":      {"", ""},
		"empty":     {"{}", ""},
		"newline":   {"{\n}\n", ""},
		"settings":  {"{\n  \"model\": \"x\",\n  \"permissions\": {\"allow\": [\"Bash(ls:*)\"]}\n}\n", ""},
		"tabs":      {"{\n\t\"a\": [\n\t\t1,\n\t\t2\n\t]\n}", ""},
		"crlf":      {"{\r\n  \"a\": 1\r\n}\r\n", ""},
		"bom":       {"\ufeff{\n  \"a\": 1\n}\n", ""},
		"one line":  {`{"a":1,"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"mine"}]}]}}`, ""},
		"foreign":   {"{\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\n        \"matcher\": \"Bash\",\n        \"hooks\": [{\"type\": \"command\", \"command\": \"mine\", \"timeout\": 5}]\n      }\n    ],\n    \"Other\": []\n  },\n  \"z\": null\n}\n", ""},
		"no hooks":  {"{\"hooks\": {}, \"a\": \"\\u00e9\"}", ""},
		"empty arr": {"{\"hooks\": {\"PreToolUse\": [ ]}}", ""},
		"comments":  {"{\n  // mine\n  \"a\": 1, /* why */\n  \"b\": [1,],\n}\n", "gemini"},
	}
}

// TestAdded: install twice is the same, every other byte stays, and uninstall restores the original bytes.
func TestAdded(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude", "codex", "gemini", "qwen", "crush", "copilot", "goose"} {
		a := agent(t, name)
		entries, mark := entriesOf(a)
		for what, f := range files() {
			if f.only != "" && f.only != name || name == "crush" && strings.Contains(f.text, "hooks") {
				continue
			}
			t.Run(name+" "+what, func(t *testing.T) {
				t.Parallel()
				path := filepath.Join(t.TempDir(), "settings.json")
				if f.text != "" {
					if err := os.WriteFile(path, []byte(f.text), 0o640); err != nil {
						t.Fatal(err)
					}
				}
				add := func(b []byte) ([]byte, error) { return a.Added(b, mark, entries) }
				// An earlier version registered fewer events.
				if some := entries[:len(entries)/2]; len(some) > 0 {
					if _, err := install.Edit(path, false, func(b []byte) ([]byte, error) { return a.Added(b, mark, some) }); err != nil {
						t.Fatal(err)
					}
				}
				one, err := install.Edit(path, false, add)
				if err != nil {
					t.Fatal(err)
				}
				two, err := install.Edit(path, false, add)
				if err != nil || two.Changed() {
					t.Fatalf("the second install changed the file: %v\n%s", err, two.After)
				}
				found, err := a.Hooks(one.After, mark)
				ours := 0
				for _, h := range found {
					if h.Ours {
						ours++
					}
				}
				if err != nil || ours != len(entries) {
					t.Fatalf("%d of %d hooks: %v\n%s", ours, len(entries), err, one.After)
				}
				kept(t, f.text, one.After)
				if f.only == "" && !json.Valid(bytes.TrimPrefix(one.After, []byte("\ufeff"))) {
					t.Fatalf("not JSON any more:\n%s", one.After)
				}
				if strings.Contains(f.text, "\r\n") && bytes.Count(one.After, []byte("\n")) != bytes.Count(one.After, []byte("\r\n")) {
					t.Error("line ends are mixed")
				}
				if _, err := a.Uninstall(path, one.After, mark); err != nil {
					t.Fatal(err)
				}
				after, err := os.ReadFile(path)
				if f.text == "" && errors.Is(err, os.ErrNotExist) {
					return
				}
				if err != nil || string(after) != f.text {
					t.Errorf("uninstall left %v\n%s\nnot\n%s", err, after, f.text)
				}
				if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
					t.Errorf("mode %v", info.Mode())
				}
			})
		}
	}
}

// kept checks that a text is a subsequence of another in its lines: nothing was taken out.
func kept(t *testing.T, before string, after []byte) {
	t.Helper()
	rest := string(after)
	for line := range strings.FieldsSeq(before) {
		i := strings.Index(rest, strings.TrimRight(line, ",}]"))
		if i < 0 {
			t.Fatalf("%q is gone:\n%s", line, after)
		}
	}
}

// TestForeignEdits: what others changed between install and uninstall survives.
func TestForeignEdits(t *testing.T) {
	t.Parallel()
	a := agent(t, "claude")
	entries, mark := entriesOf(a)
	path := filepath.Join(t.TempDir(), "settings.json")
	before := "{\n  \"a\": 1\n}\n"
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := install.Edit(path, false, func(b []byte) ([]byte, error) { return a.Added(b, mark, entries) })
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(c.After), "\"a\": 1", "\"a\": 2", 1)
	edited = strings.Replace(edited, "\"PreToolUse\": [", "\"PreToolUse\": [\n      {\"matcher\": \"X\", \"hooks\": [{\"type\": \"command\", \"command\": \"theirs\"}]},", 1)
	if err := os.WriteFile(path, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Uninstall(path, []byte(edited), mark); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := "{\n  \"a\": 2,\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\"matcher\": \"X\", \"hooks\": [{\"type\": \"command\", \"command\": \"theirs\"}]}\n    ]\n  }\n}\n"
	if string(after) != want {
		t.Errorf("left\n%s\nnot\n%s", after, want)
	}
}

// TestForeignEdits_bytes: with hooks of others in the file, what others write between install and uninstall stays as they wrote it, and
// not a byte of ours is left.
func TestForeignEdits_bytes(t *testing.T) {
	t.Parallel()
	a := agent(t, "claude")
	entries, mark := entriesOf(a)
	for what, before := range map[string]string{
		"settings": "{\n\t\"model\" : \"x\",\n\n\t\"hooks\": {\n\t\t\"PreToolUse\": [ {\"matcher\":\"Bash\",\"hooks\":[{\"type\":\"command\",\"command\":\"mine\"}]} ]\n\t},\n\t\"z\": [1,2 , 3]\n}",
		"crlf":     "{\r\n  \"hooks\": {\r\n    \"Stop\": [\r\n      {\"hooks\":[{\"type\":\"command\",\"command\":\"mine\"}]}\r\n    ]\r\n  },\r\n  \"model\": \"x\"\r\n}\r\n",
		"one line": `{"model": "x","hooks":{"Stop":[{"hooks":[{"type":"command","command":"mine"}]}]}}`,
	} {
		path := filepath.Join(t.TempDir(), "settings.json")
		if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := install.Edit(path, false, func(b []byte) ([]byte, error) { return a.Added(b, mark, entries) })
		if err != nil {
			t.Fatal(err)
		}
		edit := strings.NewReplacer(`"x"`, `"other", "added":   true`, `"mine"`, `"mine --changed"`)
		edited := []byte(edit.Replace(string(c.After)))
		if err := os.WriteFile(path, edited, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Uninstall(path, edited, mark); err != nil {
			t.Fatal(err)
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != edit.Replace(before) {
			t.Errorf("%s: %v\n%q, not\n%q", what, err, after, edit.Replace(before))
		}
	}
}

// TestRefused: a file that the agent would reject is refused with its line, and stays.
func TestRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		agent, text string
		line        int
	}{
		"comment":        {"claude", "{\n  // no\n}\n", 2},
		"trailing comma": {"claude", "{\n  \"a\": 1,\n}\n", 3},
		"cut":            {"codex", "{\n  \"hooks\": {", 2},
		"duplicate":      {"claude", "{\n\"a\": 1,\n\"a\": 2}", 3},
		"hooks":          {"claude", "{\n  \"hooks\": []\n}", 2},
		"event":          {"claude", "{\n  \"hooks\": {\n    \"Stop\": {}\n  }\n}", 3},
		"group":          {"claude", "{\"hooks\": {\"Stop\": [\n\"x\"]}}", 2},
		"timeout":        {"claude", "{\"hooks\": {\"Stop\": [{\"hooks\": [\n{\"type\": \"command\", \"command\": \"x\",\n \"timeout\": \"5\"}]}]}}", 3},
		"command":        {"claude", "{\"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\",\n\"command\": 5}]}]}}", 2},
		"no type":        {"claude", "{\"hooks\": {\"Stop\": [{\"hooks\": [\n{\"command\": \"x\"}]}]}}", 2},
		"rest":           {"codex", "{}\n{}", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := agent(t, tc.agent)
			entries, mark := entriesOf(a)
			path := filepath.Join(t.TempDir(), "settings.json")
			if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := install.Edit(path, false, func(b []byte) ([]byte, error) { return a.Added(b, mark, entries) })
			wrong := (*install.SyntaxError)(nil)
			if !errors.As(err, &wrong) || wrong.Line != tc.line {
				t.Errorf("%v, want line %d", err, tc.line)
			}
			if after, _ := os.ReadFile(path); string(after) != tc.text {
				t.Errorf("the file is now %s", after)
			}
		})
	}
}

// TestEdit_file: a link is followed, a file that is read-only is refused, five backups are kept.
func TestEdit_file(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, link := filepath.Join(dir, "real.json"), filepath.Join(dir, "link.json")
	if err := errors.Join(os.WriteFile(path, []byte("0"), 0o600), os.Symlink(path, link)); err != nil {
		t.Fatal(err)
	}
	for i := range 9 {
		if _, err := install.Edit(link, false, func([]byte) ([]byte, error) { return []byte(fmt.Sprint(i)), nil }); err != nil {
			t.Fatal(err)
		}
	}
	data, _ := os.ReadFile(path)
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 || string(data) != "8" {
		t.Errorf("the link was replaced, or the file was not: %v %q", err, data)
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 2+5 {
		t.Errorf("%d entries: %v", len(entries), entries)
	}
	nowhere := filepath.Join(dir, "nowhere.json")
	if err := os.Symlink(filepath.Join(dir, "none"), nowhere); err != nil {
		t.Fatal(err)
	}
	if _, err := install.Edit(nowhere, false, func([]byte) ([]byte, error) { return []byte("x"), nil }); err == nil || !strings.Contains(err.Error(), "is a link to") {
		t.Errorf("a link to nothing: %v", err)
	}
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	if _, err := install.Edit(path, false, func([]byte) ([]byte, error) { return []byte("x"), nil }); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("read-only: %v", err)
	}
}

// TestEdit_meanwhile: what an agent writes to its settings while they are edited is not lost, and the mode stays.
func TestEdit_meanwhile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f.json")
	if err := errors.Join(os.WriteFile(path, []byte("a"), 0o600), os.Chmod(path, 0o640)); err != nil { //nolint:gosec // the mode is what is tested
		t.Fatal(err)
	}
	saves := 0
	add := func(b []byte) ([]byte, error) {
		saves++
		if saves < 4 {
			return append(b, '+'), os.WriteFile(path, bytes.Repeat([]byte("a"), saves+1), 0o600)
		}
		return append(b, '+'), nil
	}
	c, err := install.Edit(path, false, add)
	data, _ := os.ReadFile(path)
	if info, _ := os.Stat(path); err != nil || string(data) != "aaaa+" || string(c.Before) != "aaaa" || info.Mode().Perm() != 0o640 {
		t.Errorf("%v %q %+v %v", err, data, c, info.Mode())
	}
	always := func(b []byte) ([]byte, error) {
		saves++
		return append(b, '+'), os.WriteFile(path, bytes.Repeat([]byte("b"), saves), 0o600)
	}
	if _, err := install.Edit(path, false, always); err == nil || !strings.Contains(err.Error(), path+": another program writes the file at the same time") {
		t.Errorf("an agent that always writes: %v", err)
	}
	if kept, _ := filepath.Glob(path + ".mortise-2*"); len(kept) != 1 { // edits that began again must not take the place of what was before
		t.Errorf("the backups are %q", kept)
	}
	appears := filepath.Join(t.TempDir(), "new.json")
	if _, err := install.Edit(appears, false, func(b []byte) ([]byte, error) {
		if len(b) == 0 {
			return []byte("+"), os.WriteFile(appears, []byte("theirs"), 0o600)
		}
		return append(b, '+'), nil
	}); err != nil {
		t.Error(err)
	}
	if data, _ := os.ReadFile(appears); string(data) != "theirs+" {
		t.Errorf("%q", data)
	}
}

// TestEdit_atomic: a reader sees the old file or the new one at any time.
func TestEdit_atomic(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f.json")
	texts := [2][]byte{bytes.Repeat([]byte("a"), 100_000), bytes.Repeat([]byte("b"), 100_000)}
	if err := os.WriteFile(path, texts[0], 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		for i := range 50 {
			if _, err := install.Edit(path, false, func([]byte) ([]byte, error) { return texts[(i+1)%2], nil }); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for {
		data, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(data, texts[0]) && !bytes.Equal(data, texts[1]) {
			t.Fatalf("half a file: %v, %d bytes", err, len(data))
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}

// TestAtOnce: of processes and goroutines that edit a file at once, no edit is lost.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	const writers, edits = 8, 12
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range edits {
				if _, err := install.Edit(path, false, func(b []byte) ([]byte, error) { return append(b, '.'), nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if data, err := os.ReadFile(path); err != nil || len(data) != writers*edits {
		t.Errorf("%d edits of %d are left: %v", len(data), writers*edits, err)
	}
}

// TestPosition: our hooks come last, so that others keep their positions, which Codex's trust is bound to.
func TestPosition(t *testing.T) {
	t.Parallel()
	a := agent(t, "codex")
	entries, mark := entriesOf(a)
	theirs := `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"one"}]},{"hooks":[{"type":"command","command":"two"}]}]}}`
	out, err := a.Added([]byte(theirs), mark, entries)
	if err != nil {
		t.Fatal(err)
	}
	found, err := a.Hooks(out, mark)
	if err != nil || found[0].Command != "one" || found[1].Command != "two" || !found[2].Ours {
		t.Errorf("%v %v", err, found)
	}
}

// FuzzAdded: any file is refused, or keeps being valid with our hooks, and without them is as it was but for white space.
func FuzzAdded(f *testing.F) {
	for _, s := range files() {
		f.Add([]byte(s.text))
	}
	f.Add([]byte(`{"hooks":{"Stop":[{"hooks":[]}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range []string{"claude", "gemini"} {
			a, err := install.AgentOf(name)
			if err != nil {
				t.Fatal(err)
			}
			entries, mark := entriesOf(a)
			out, err := a.Added(data, mark, entries)
			if err != nil {
				continue
			}
			again, err := a.Added(out, mark, entries)
			if err != nil || !bytes.Equal(again, out) {
				t.Fatalf("not idempotent: %v\n%s", err, out)
			}
			if _, err := a.Removed(out, mark); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
	})
}

// TestMark: a line is ours with any path of the client, and is not when a shell would do anything else with it.
func TestMark(t *testing.T) {
	t.Parallel()
	a := agent(t, "codex")
	const odd = "/opt/it's $(id)/mortise-hook"
	for _, profile := range []string{profile, "/home/it's me/.p"} {
		mark := install.Mark(profile, "codex")
		line := func(client string, closed, gate bool) string {
			return (&install.Line{Client: client, Profile: profile, Dialect: "codex", Event: "PreToolUse", Closed: closed, Gate: gate, Without: `{"it's":"withheld"}`}).String()
		}
		for _, l := range []string{line(client, false, true), line(client, true, true), line(client, true, false), line(odd, false, true), line(odd, true, true), line(odd, true, false)} {
			if !mark.MatchString(l) {
				t.Errorf("%s is ours", l)
			}
		}
		closed, bare, result := line(client, true, true), line(client, false, true), line(client, true, false)
		for _, l := range []string{
			"evil; " + bare, "evil " + bare, "evil\n" + bare, bare + "; evil", bare + "\nevil", bare + " $(evil)", closed + " evil", closed + "\n", "$(evil)" + bare,
			strings.Replace(closed, "echo ", "echo $(evil) ", 1), strings.Replace(closed, "echo 'mortise", "echo ''`evil`'mortise", 1), `'a'\'` + bare,
			strings.Replace(bare, "codex", "claude", 1), strings.Replace(bare, "PreToolUse", "`evil`", 1),
			result + " evil", result + "; evil", strings.Replace(result, "printf ", "evil ", 1), strings.Replace(result, "printf %s ", "printf %s $(evil)", 1),
		} {
			if mark.MatchString(l) {
				t.Errorf("%s is not ours", l)
			}
		}
		// Another installation's lines are replaced, as after an upgrade; those of another profile stay.
		old := install.Entries(a.Dialect, odd, profile, []string{"PreToolUse", "Stop"}, func(*hook.EventSpec) bool { return true })
		data, err := a.Added(nil, mark, old)
		if err != nil {
			t.Fatal(err)
		}
		data, err = a.Added(data, mark, install.Entries(a.Dialect, client, profile, []string{"PreToolUse"}, func(*hook.EventSpec) bool { return true }))
		if err != nil {
			t.Fatal(err)
		}
		found, err := a.Hooks(data, mark)
		if err != nil || len(found) != 1 || found[0].Command != closed || found[0].Client != client {
			t.Errorf("%v %+v", err, found)
		}
		if found, err = a.Hooks(data, install.Mark("/other", "codex")); err != nil || len(found) != 1 || found[0].Ours {
			t.Errorf("%v %+v", err, found)
		}
	}
}

// TestRandomEdits: hooks of several profiles come and go in any order, and one leaves the others alone.
func TestRandomEdits(t *testing.T) {
	t.Parallel()
	a := agent(t, "claude")
	r := rand.New(rand.NewPCG(7, 8)) //nolint:gosec // a test
	data := []byte("{\n  \"a\": 1\n}\n")
	there := map[string]bool{}
	for range 200 {
		p := fmt.Sprintf("/p/%d", r.IntN(3))
		mark := install.Mark(p, "claude")
		entries := install.Entries(a.Dialect, client, p, []string{"PreToolUse", "Stop"}, func(*hook.EventSpec) bool { return true })
		var err error
		if r.IntN(2) == 0 {
			data, err = a.Added(data, mark, entries)
			there[p] = true
		} else {
			data, err = a.Removed(data, mark)
			delete(there, p)
		}
		if err != nil || !json.Valid(data) {
			t.Fatalf("%v\n%s", err, data)
		}
		found, err := a.Hooks(data, regexp.MustCompile("^(.*mortise-hook)"))
		if err != nil || len(found) != 2*len(there) {
			t.Fatalf("%v: %d hooks of %d profiles\n%s", err, len(found), len(there), data)
		}
	}
	if !strings.Contains(string(data), "\"a\": 1") {
		t.Error(string(data))
	}
}
