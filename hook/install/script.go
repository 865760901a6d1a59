package install

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/mortise-dev/mortise/hook"
)

//go:embed shims
var shims embed.FS

// ScriptMark is in every extension of ours.
const ScriptMark = "mortise-shim"

// Script is the extension for an agent without command hooks. An event without an answer of the client is answered as by the policy.
func (a *Agent) Script(client, profile string, events []string, closed func(*hook.EventSpec) bool) ([]byte, error) {
	head, err := shims.ReadFile("shims/connect.js")
	if err != nil {
		return nil, fmt.Errorf("install: %w", err)
	}
	name := map[string]string{"pi": "pi.ts", "opencode": "opencode.js"}[a.Dialect.Name]
	tail, err := shims.ReadFile("shims/" + name)
	if err != nil {
		return nil, fmt.Errorf("install: %w", err)
	}
	type missing struct {
		Closed bool            `json:"closed"`
		Answer json.RawMessage `json:"answer"`
	}
	answers := map[string]missing{}
	for _, e := range events {
		spec := a.Dialect.Events[e]
		m := missing{Closed: closed(spec)}
		answer, _ := a.Dialect.PolicyOutput(spec, m.Closed, "mortise: the hook client "+client+" did not answer; run: mortise hook doctor "+a.Dialect.Name)
		m.Answer = json.RawMessage(answer)
		answers[e] = m
	}
	out := slices.Concat(head, tail)
	for mark, v := range map[string]any{
		"__CLIENT__": client, "__PROFILE__": profile, "__DIALECT__": a.Dialect.Name, "__EVENTS__": answers,
	} {
		text, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("install: %w", err)
		}
		out = bytes.ReplaceAll(out, []byte(mark), text)
	}
	return out, nil
}

// WriteCompanion writes what an agent wants next to its file, unless it is there.
func (a *Agent) WriteCompanion(file string) error {
	for name, text := range a.companion {
		path := filepath.Join(filepath.Dir(file), filepath.FromSlash(name))
		if _, err := os.Stat(path); err == nil {
			continue
		}
		if err := write(path, []byte(text), 0o644, nil); err != nil {
			return err
		}
	}
	return nil
}

// Uninstall takes our hooks out of a file whose content is before. A file that was as it is now because of an install
// gets its former bytes; one that is ours alone is deleted.
func (a *Agent) Uninstall(path string, before []byte, mark *regexp.Regexp) (*Change, error) {
	if a.layout == script {
		if !bytes.Contains(before, []byte(ScriptMark)) {
			return &Change{File: path, Before: before, After: before}, nil
		}
		return &Change{File: path, Before: before, Deleted: true}, os.Remove(path)
	}
	entries, err := a.ours(before, mark)
	if err != nil {
		return nil, fmt.Errorf("install: %s: %w", path, err)
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	original, known := Original(path, before, func(b []byte) ([]byte, error) {
		if old, err := a.ours(b, mark); err != nil || len(old) > 0 {
			return nil, errors.Join(err, errOurs)
		}
		return a.Added(b, mark, entries)
	})
	c, err := Edit(path, false, func(now []byte) ([]byte, error) {
		if known && bytes.Equal(now, before) {
			return original, nil
		}
		return a.Removed(now, mark)
	})
	if err != nil || !c.Changed() {
		return c, err
	}
	if left, err := a.Hooks(c.After, mark); err == nil && len(left) == 0 && (a.own || fresh(c.After)) && a.made(c, mark) {
		return c, a.delete(c)
	}
	return c, nil
}

// made reports whether the file began with an install: no backup of it is without hooks of ours.
func (a *Agent) made(c *Change, mark *regexp.Regexp) bool {
	for _, b := range backups(c.File) {
		data, err := os.ReadFile(b)
		if err != nil {
			return false
		}
		if ours, err := a.ours(data, mark); err != nil || len(ours) == 0 {
			return false
		}
	}
	return true
}

// errOurs is a backup that an install after the first one made.
var errOurs = errors.New("it has hooks of ours already")

// delete deletes a file in which nothing is left, with what was next to it.
func (a *Agent) delete(c *Change) error {
	if now, _ := os.ReadFile(c.File); !bytes.Equal(now, c.After) {
		return nil // another program wrote it meanwhile
	}
	c.Deleted = true
	errs := []error{os.Remove(c.File)}
	for _, b := range backups(c.File) {
		errs = append(errs, os.Remove(b))
	}
	for name := range a.companion {
		errs = append(errs, os.Remove(filepath.Join(filepath.Dir(c.File), filepath.FromSlash(name))))
	}
	for i, err := range errs {
		if errors.Is(err, fs.ErrNotExist) {
			errs[i] = nil
		}
	}
	return errors.Join(errs...)
}

// fresh reports whether a file is what an install begins with when there is none.
func fresh(data []byte) bool {
	return bytes.Equal(bytes.TrimSpace(data), []byte("{}")) || bytes.Equal(bytes.Join(bytes.Fields(data), nil), []byte(`{"version":1}`))
}

// ours are the entries of a profile in a file.
func (a *Agent) ours(data []byte, mark *regexp.Regexp) ([]Entry, error) {
	found, err := a.Hooks(data, mark)
	var out []Entry
	for _, f := range found {
		if f.Ours {
			e := Entry{Event: f.Event, Line: f.Command, Timeout: a.Dialect.Timeout}
			if spec := a.Dialect.Events[f.Event]; spec != nil {
				e.Timeout = spec.Timeout
			}
			out = append(out, e)
		}
	}
	return out, err
}
