package hookcmd

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/program"
)

// hookOptions are flags of all mortise hook commands.
type hookOptions struct {
	links                   program.Links
	config, profile, client string
}

// configPath is the config of hooks: of the flag, of the current folder, or of the user's config folder.
func (o *hookOptions) configPath() (string, error) {
	path := cmp.Or(o.config, os.Getenv("MORTISE_CONFIG"))
	if path == "" {
		path = config.FileName
		if _, err := os.Stat(path); err != nil {
			if dir, err := os.UserConfigDir(); err == nil {
				path = filepath.Join(dir, "mortise", config.FileName)
			}
		}
	}
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
