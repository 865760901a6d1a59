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

	"github.com/mortise-dev/mortise/hook/install"
)

// note is what is needed to restore the settings of an agent.
type note struct {
	Path     string            `json:"path"`
	Existed  bool              `json:"existed"`
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
		return nil, fmt.Errorf("%s: %w", p.notePath(agent), err)
	}
	return n, nil
}

func (p Place) keep(agent string, n *note) error {
	raw, err := json.MarshalIndent(n, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.State, 0o700); err != nil {
		return err
	}
	_, err = install.Edit(p.notePath(agent), false, func([]byte) ([]byte, error) { return raw, nil })
	return err
}

// Left is a value that the user changed after the installation, and that is left as it is.
type Left struct{ Key, Now, Before string }

// Result is what was done to the settings of an agent.
type Result struct {
	Path, Backup string
	// Gone means that the settings were deleted by another program, Exact that they are the original bytes again.
	Gone, Exact bool
	Left        []Left
}

// Install writes the proxy's address into the settings of an agent. What they were is kept first. Installing again
// changes the address and keeps what was kept.
func Install(p Place, agent, address string) (*Result, error) {
	path, err := p.settings(agent)
	if err != nil {
		return nil, err
	}
	if _, err = p.read(agent); !errors.Is(err, fs.ErrNotExist) {
		if _, err := Uninstall(p, agent); err != nil {
			return nil, err
		}
	}
	_, err = os.Stat(path)
	n := &note{Path: path, Existed: err == nil, Address: strings.TrimSuffix(address, "/")}
	c, err := install.Edit(path, false, func(now []byte) ([]byte, error) {
		n.Original = now
		if n.Written, err = n.write(agent); err != nil {
			return nil, err
		}
		return n.Written, p.keep(agent, n)
	})
	if err != nil {
		return nil, errors.Join(byHand(agent, path, n.Address, err), p.forget(agent))
	}
	return &Result{Path: path, Backup: c.Backup}, nil
}

// forget deletes the note of an agent, and the copies of it.
func (p Place) forget(agent string) error {
	copies, _ := filepath.Glob(p.notePath(agent) + ".mortise-2*")
	for _, name := range copies {
		_ = os.Remove(name)
	}
	if err := os.Remove(p.notePath(agent)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// byHand is an error with what a person can write.
func byHand(agent, path, address string, err error) error {
	empty, _ := open(agent, nil)
	list, _ := changes(agent, address, empty)
	var lines strings.Builder
	for _, c := range list {
		fmt.Fprintf(&lines, "\n  %s = %s", c.key(), c.raw())
	}
	return fmt.Errorf("%s is not changed: %w\nrepair it and try again, or write into it by hand:%s", path, plain{err}, &lines)
}

// plain is an error of the editor without the name of a package.
type plain struct{ error }

func (e plain) Error() string { return strings.TrimPrefix(e.error.Error(), "install: ") }
func (e plain) Unwrap() error { return e.error }

// write returns the original settings with the address, and keeps the base URLs that they had.
func (n *note) write(agent string) ([]byte, error) {
	d, err := open(agent, n.Original)
	if err != nil {
		return nil, err
	}
	list, err := changes(agent, n.Address, d)
	n.Former = map[string]string{}
	for _, c := range list {
		if err := d.Set(c.raw(), c.path...); err != nil {
			return nil, err
		}
		if c.route != "" {
			n.Former[c.route] = c.former
		}
	}
	return d.Bytes(), err
}

// Uninstall takes the proxy's address out of the settings of an agent: the original bytes are restored, or, where they
// were changed since, the values that still are those that were written.
func Uninstall(p Place, agent string) (*Result, error) {
	path, err := p.settings(agent)
	if err != nil {
		return nil, err
	}
	n, err := p.read(agent)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the proxy's address is not in %s: mortise proxy install %s was not run, or is undone", path, agent)
	}
	if err != nil {
		return nil, err
	}
	r := &Result{Path: n.Path}
	if _, err := os.Stat(n.Path); errors.Is(err, fs.ErrNotExist) {
		r.Gone, r.Exact = n.Existed, !n.Existed
		return r, p.forget(agent)
	}
	c, err := install.Edit(n.Path, false, func(now []byte) (out []byte, err error) {
		out, r.Left, err = n.takeOut(agent, now)
		return out, err
	})
	if err != nil {
		return nil, fmt.Errorf("%s is not changed: %w\nrepair it and try again; the original is kept in %s", n.Path, plain{err}, p.notePath(agent))
	}
	r.Backup, r.Exact = c.Backup, bytes.Equal(c.After, n.Original)
	if blank := strings.TrimSpace(string(c.After)); !n.Existed && (blank == "" || blank == "{}") {
		r.Exact = true
		err = os.Remove(c.File)
	}
	return r, errors.Join(err, p.forget(agent))
}

// takeOut returns settings without what was written.
func (n *note) takeOut(agent string, now []byte) ([]byte, []Left, error) {
	if bytes.Equal(now, n.Written) {
		return n.Original, nil, nil
	}
	before, err := open(agent, n.Original)
	if err != nil {
		return nil, nil, err
	}
	d, err := open(agent, now)
	if err != nil {
		return nil, nil, err
	}
	list, err := changes(agent, n.Address, before)
	if err != nil {
		return nil, nil, err
	}
	keep := func(path []string) bool { return before.Raw(path...) != "" || len(before.Keys(path...)) > 0 }
	var left []Left
	for _, c := range list {
		is, was := text(d, c.path...), before.Raw(c.path...)
		switch {
		case is == c.text && was != "":
			err = d.Set(was, c.path...)
		case is == c.text:
			err = d.Remove(keep, c.path...)
		case is != text(before, c.path...):
			left = append(left, Left{c.key(), is, text(before, c.path...)})
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return d.Bytes(), left, nil
}

// Installed returns the address that is in an agent's settings, or "".
func Installed(p Place, agent string) string {
	if n, err := p.read(agent); err == nil {
		return n.Address
	}
	return ""
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
