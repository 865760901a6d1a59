package fs

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/mortise-dev/mortise/internal/engine"
	"github.com/mortise-dev/mortise/internal/engine/files"
)

// Mount grants a folder of the host, by WASI. Nothing outside of the folder can be
// reached: not by "..", not by an absolute path, and not through a symbolic link
// that leads out. Only regular files and folders can be opened. Guests cannot
// make links. A guest that has opened a file gets a new instance for its next
// call, because WASI would keep the descriptor.
type Mount struct {
	// Host is the folder. It must exist when the module is loaded. Required.
	Host string
	// Guest is where the guest sees it: an absolute path without "." and "..", such
	// as "/data". Required.
	Guest string
	// Writable lets the guest change what is there. New files belong to the user of
	// this process and have mode 0600, folders 0700.
	Writable bool
	// Bytes bounds a writable folder: the size of all its files together, counted at
	// load and then kept up with what guests of this module do, and what one call
	// may write. Default 16 MiB.
	Bytes int64
	// Entries bounds the files and folders in it. Default 10,000.
	Entries int
}

// Grant gives the guest folders of the host.
type Grant struct{ Mounts []Mount }

// Capability implements host.Capability.
func (*Grant) Capability() string { return "fs" }

// Checked implements host.Capability.
func (f *Grant) Checked(string) (engine.Capability, error) {
	all, err := Checked(f.Mounts)
	return &Grant{all}, err
}

// Open implements host.Capability.
func (f *Grant) Open(env *engine.Env) (*engine.Opened, error) {
	out := new(engine.Opened)
	var all []*files.Folder
	out.Close = func() error {
		var errs []error
		for _, f := range all {
			errs = append(errs, f.Release())
		}
		return errors.Join(errs...)
	}
	for n, m := range f.Mounts {
		one, err := files.OpenFolder(files.FolderSpec(m), env)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("fs.Grant.Mounts[%d]: %w", n, err), out.Close())
		}
		all, out.Mounts = append(all, one), append(out.Mounts, one)
	}
	return out, nil
}

// withDefaults checks a mount and fills in its zero fields.
func (m Mount) withDefaults(n int) (Mount, error) {
	at := fmt.Sprintf("fs.Grant.Mounts[%d]", n)
	switch {
	case m.Host == "":
		return m, fmt.Errorf("%s.Host is empty; name a folder", at)
	case !strings.HasPrefix(m.Guest, "/") || path.Clean(m.Guest) != m.Guest || strings.ContainsRune(m.Guest, 0):
		return m, fmt.Errorf("%s.Guest %q is not an absolute clean path; write one such as /data", at, engine.Clean(m.Guest, engine.MaxName))
	}
	if err := engine.Negative(engine.Field{Name: at + ".Bytes", Value: m.Bytes}, engine.Field{Name: at + ".Entries", Value: int64(m.Entries)}); err != nil {
		return m, err
	}
	m.Bytes = cmp.Or(m.Bytes, 16<<20)
	m.Entries = cmp.Or(m.Entries, 10_000)
	return m, nil
}

// Checked checks the mounts of a module.
func Checked(in []Mount) ([]Mount, error) {
	var out []Mount
	seen := map[string]bool{}
	for n, m := range in {
		m, err := m.withDefaults(n)
		if err != nil {
			return nil, err
		}
		if seen[m.Guest] {
			return nil, fmt.Errorf("fs.Grant.Mounts[%d].Guest %s is there twice; give each mount a path of its own", n, engine.Clean(m.Guest, engine.MaxName))
		}
		seen[m.Guest] = true
		out = append(out, m)
	}
	return out, nil
}
