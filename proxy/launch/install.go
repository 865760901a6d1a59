package launch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// note is what is needed to restore the settings of an agent.
type note struct {
	Path     string            `json:"path"`
	Existed  bool              `json:"existed"`
	Mode     fs.FileMode       `json:"mode,omitempty"`
	Original []byte            `json:"original,omitempty"`
	Written  []byte            `json:"written"`
	Address  string            `json:"address"`
	Former   map[string]string `json:"former,omitempty"`
}

func (p Place) notePath(agent string) string { return filepath.Join(p.State, agent+".json") }

func (p Place) read(agent string) (*note, error) {
	raw, err := os.ReadFile(p.notePath(agent))
	if err != nil {
		return nil, err
	}
	n := &note{}
	if err := json.Unmarshal(raw, n); err != nil {
		return nil, fmt.Errorf("launch: %s: %w", p.notePath(agent), err)
	}
	return n, nil
}

// Install writes the proxy's address into the settings of an agent, and returns their file. What they were is kept
// first. Installing again changes the address and keeps what was kept.
func Install(p Place, agent, address string) (string, error) {
	path, err := p.settings(agent)
	if err != nil {
		return "", err
	}
	if _, err := p.read(agent); err == nil {
		if _, err := Uninstall(p, agent); err != nil {
			return path, err
		}
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return path, fmt.Errorf("launch: %w", err)
	}
	n := &note{Path: path, Existed: err == nil, Original: text, Address: address, Mode: 0o600}
	if info, err := os.Stat(path); err == nil {
		n.Mode = info.Mode().Perm()
	}
	if n.Written, n.Former, err = edit(agent, bytes.Clone(text), strings.TrimSuffix(address, "/")); err != nil {
		return path, fmt.Errorf("%w; in %s", err, path)
	}
	raw, err := json.MarshalIndent(n, "", "  ")
	if err != nil {
		return path, fmt.Errorf("launch: %w", err)
	}
	if err := write(p.notePath(agent), raw, 0o600); err != nil {
		return path, err
	}
	return path, write(path, n.Written, n.Mode)
}

// ErrChanged reports settings that were changed after the proxy's address was written.
var ErrChanged = errors.New("the settings were changed since")

// Uninstall restores the settings of an agent and returns their file. Where they were changed since, only the address
// is taken out again; if that cannot be done it returns ErrChanged.
func Uninstall(p Place, agent string) (string, error) {
	n, err := p.read(agent)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("launch: %s is not installed", agent)
	}
	if err != nil {
		return "", err
	}
	now, err := os.ReadFile(n.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return n.Path, fmt.Errorf("launch: %w", err)
	case bytes.Equal(now, n.Original) && n.Existed: // killed before the settings were written
	case bytes.Equal(now, n.Written):
		if err := n.restore(); err != nil {
			return n.Path, err
		}
	default:
		if err := n.takeOut(now); err != nil {
			return n.Path, err
		}
	}
	return n.Path, os.Remove(p.notePath(agent))
}

func (n *note) restore() error {
	if !n.Existed {
		return os.Remove(n.Path)
	}
	return write(n.Path, n.Original, n.Mode)
}

// takeOut replaces what was written by what was there, in settings that have other changes.
func (n *note) takeOut(now []byte) error {
	out := string(now)
	for route, was := range n.Former {
		out = strings.ReplaceAll(out, n.Address+"/to/"+route, was)
	}
	for {
		before, rest, found := strings.Cut(out, tomlBegin)
		_, after, closed := strings.Cut(rest, tomlEnd)
		if !found || !closed {
			break
		}
		out = before + after
	}
	out = strings.ReplaceAll(out, "# mortise proxy: ", "")
	for _, field := range []string{`"ANTHROPIC_BASE_URL":"` + n.Address + `"`, `"ANTHROPIC_BASE_URL": "` + n.Address + `"`} {
		out = strings.ReplaceAll(strings.ReplaceAll(out, field+",", ""), field, "")
	}
	if strings.Contains(out, n.Address) {
		return fmt.Errorf("launch: %s: %w; take out %s by hand", n.Path, ErrChanged, n.Address)
	}
	return write(n.Path, []byte(out), n.Mode)
}

// Route returns the base URL that an agent had before, by the name of a route.
func Route(p Place, route string) string {
	agent, _, _ := strings.Cut(route, "-")
	for _, known := range Agents() {
		if known != agent {
			continue
		}
		if n, err := p.read(agent); err == nil {
			return n.Former[route]
		}
	}
	return ""
}

// write replaces a file at once.
func write(path string, data []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // the link stays
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".mortise-*")
	if err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("launch: %w", err)
	}
	return nil
}
