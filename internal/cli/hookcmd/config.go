package hookcmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/program"
)

// hookOptions are flags of all mortise hook commands.
type hookOptions struct {
	links                   program.Links
	config, profile, client string
	// installs means that the user asks for what the config of the current folder has.
	installs bool
	// notes is where the user is notified, once.
	notes io.Writer
	noted bool
}

// configPath is the config of hooks: of the flag, of the current folder, or of the user's config folder. A project may have brought
// the one of the current folder, and with it plugins, grants and variables for them: it counts only where the user installs it, or
// has installed it, as for the daemon.
func (o *hookOptions) configPath() (string, error) {
	path := cmp.Or(o.config, os.Getenv("MORTISE_CONFIG"))
	if path != "" {
		return resolved(path)
	}
	if folder, err := resolved("."); err == nil && !o.installs {
		if here := filepath.Join(folder, config.FileName); o.installed(here) {
			return here, nil // also where an agent has deleted it by now
		}
	}
	own := ""
	if dir, err := os.UserConfigDir(); err == nil {
		own = filepath.Join(dir, "mortise", config.FileName)
	}
	if _, err := os.Stat(config.FileName); err != nil && own != "" {
		return resolved(own)
	}
	here, err := resolved(config.FileName)
	if err != nil || o.installs || o.installed(here) {
		return here, err
	}
	note := here + " is not used, since it was not installed; to use it, name it with --config"
	if _, err := os.Stat(own); err != nil {
		return "", errors.New(note)
	}
	if !o.noted {
		o.noted = true
		fmt.Fprintln(o.notes, "note:", note)
	}
	return resolved(own)
}

// installed reports whether the user has installed the hooks of a config.
func (o *hookOptions) installed(path string) bool {
	dir, err := o.profileDir(path)
	if err != nil {
		return false
	}
	_, err = (&hookProfile{config: path, dir: dir}).installed()
	return err == nil
}

// resolved is the path of a file that does not depend on the current folder.
func resolved(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("config: %w", err)
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	return path, nil
}

// profileDir is the folder of what belongs to a config: policy, sessions, tickets, record.
func (o *hookOptions) profileDir(path string) (string, error) {
	if o.profile != "" {
		return filepath.Abs(o.profile)
	}
	state := os.Getenv("XDG_STATE_HOME")
	if state == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("there is no home folder (%w); name a folder with --profile", err)
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "mortise", "hook", program.HexSum([]byte(path))[:12]), nil
}

// clientPath is the mortise-hook of this installation.
func (o *hookOptions) clientPath() (string, error) {
	if o.client != "" {
		return filepath.Abs(o.client)
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("%w; name the client with --client", err)
	}
	if resolved, err := filepath.EvalSymlinks(self); err == nil {
		self = resolved
	}
	path := filepath.Join(filepath.Dir(self), "mortise-hook")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("there is no mortise-hook next to %s; build it with go build ./cmd/mortise-hook, or name it with --client", self)
	}
	return path, nil
}
