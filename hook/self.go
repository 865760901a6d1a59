package hook

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// decision is how a person decides about a ticket, which the model reads in the reason of a denial, and about what is installed.
// Flags may come before the word.
var decision = regexp.MustCompile(`\bhook\s+(?:-\S+\s+(?:[^-\s]\S*\s+)?)*(?:approve|install|uninstall)\b`)

// decidesItself reports whether a call is a decision that is a person's: a shell command that approves a ticket or installs, or a
// change of the profile's files with a file tool. An agent that runs as its user has other ways to that; this closes those that it
// is shown, and those that need no shell.
func (h *handling) decidesItself() bool {
	args, _ := h.event.Call.Args.(map[string]any)
	switch h.event.Call.Kind {
	case KindShell:
		command, _ := args["command"].(string)
		return decision.MatchString(command)
	case KindWrite, KindEdit, KindPatch:
		path, _ := args["path"].(string)
		return slices.ContainsFunc(append([]string{path}, h.event.Call.Files...), h.engine.cfg.owns)
	default:
		return false
	}
}

// owns reports whether a path leads into the folder of the profile, through links or in another case too.
func (c *Config) owns(path string) bool {
	own, err := os.Stat(c.Profile)
	if err != nil || path == "" {
		return false
	}
	for path = followed(path); ; path = filepath.Dir(path) {
		if info, err := os.Stat(path); err == nil && os.SameFile(info, own) {
			return true
		}
		if filepath.Dir(path) == path {
			return false
		}
	}
}

// followed is a path with its links followed, as far as it exists.
func followed(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	if filepath.Dir(path) == path {
		return path
	}
	return filepath.Join(followed(filepath.Dir(path)), filepath.Base(path))
}
