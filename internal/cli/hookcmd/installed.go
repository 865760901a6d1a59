package hookcmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/hook/frame"
	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/program"
)

// installed is what the user has installed of a config. The agent whose calls the plugins gate may well write in the config's
// folder, so the config and its modules are copied to the folder of the profile, and the copies count.
type installed struct {
	Config string `json:"config"`
	// Follow means that nothing is copied: the files themselves count, whatever program writes them.
	Follow bool `json:"follow,omitempty"`
	// Cache is the folder of compiled code, which no later environment moves.
	Cache string `json:"cache,omitempty"`
	// Files are the SHA-256 of the config and of its modules, by path.
	Files map[string]string `json:"files,omitempty"`

	copies string
}

// Names in the folder of a profile.
const (
	installedFile = "installed.json"
	copiesFolder  = "installed"
)

// installed reads what was installed of the config. Where nothing was, the error is [fs.ErrNotExist].
func (p *hookProfile) installed() (*installed, error) {
	if err := frame.CheckFolder(p.dir); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(p.dir, installedFile))
	if err != nil {
		return nil, err
	}
	out := &installed{copies: filepath.Join(p.dir, copiesFolder)}
	if err := json.Unmarshal(data, out); err != nil {
		return nil, fmt.Errorf("%s: %w; install again", filepath.Join(p.dir, installedFile), err)
	}
	if out.Config != p.config {
		return nil, fmt.Errorf("%s: what is installed there is %s: %w", p.dir, out.Config, fs.ErrNotExist)
	}
	return out, nil
}

// copyOf is where the copy of a file is. It has the name of the file, which is that of a module without another one.
func (i *installed) copyOf(path string) string {
	return filepath.Join(i.copies, i.Files[path], filepath.Base(path))
}

// setup is the config as it is installed, or the file itself where it is not.
func (p *hookProfile) setup() (*program.Setup, error) {
	i, err := p.installed()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p.links.Load(p.config)
	case err != nil:
		return nil, err
	case i.Follow:
		cfg, err := p.links.Load(p.config)
		if err == nil && cfg.CacheDir == "" {
			cfg.CacheDir = i.Cache
		}
		return cfg, err
	}
	data, err := os.ReadFile(i.copyOf(i.Config))
	if err == nil && program.HexSum(data) != i.Files[i.Config] {
		err = fmt.Errorf("%s is damaged; install again", i.copyOf(i.Config))
	}
	if err != nil {
		return nil, err
	}
	return i.setup(p.links, data)
}

// setup is the config of these bytes with the copies of its modules.
func (i *installed) setup(links program.Links, data []byte) (*program.Setup, error) {
	cfg, err := links.Parse(i.Config, data)
	if err != nil {
		return nil, err
	}
	for n := range cfg.Plugins {
		plugin := &cfg.Plugins[n]
		path := cfg.Path(plugin.Module)
		if sum, ok := i.Files[path]; ok {
			plugin.Module = i.copyOf(path)
			if plugin.SHA256 == "" {
				plugin.SHA256 = config.Checksum(sum)
			}
		}
	}
	cfg.CacheDir = i.Cache
	return cfg, nil
}

// copy copies the config and its modules. The copies do not count before [hookProfile.keep].
func (p *hookProfile) copy() (*installed, *program.Setup, error) {
	i := &installed{Config: p.config, Files: map[string]string{}, copies: filepath.Join(p.dir, copiesFolder)}
	data, err := config.Read(p.config)
	if err != nil {
		return nil, nil, err
	}
	cfg, err := p.links.Parse(p.config, data)
	if err != nil {
		return nil, nil, err
	}
	if cfg.CacheDir != "" && p.inFolder(cfg.Path(cfg.CacheDir)) {
		return nil, nil, errors.New("config: cache_dir: compiled code in the folder of the config could be replaced there; leave it out, or install with --follow")
	}
	if i.Cache, err = config.CacheDir(cfg.Config); err != nil {
		return nil, nil, err
	}
	errs := []error{i.add(p.config, data)}
	for n := range cfg.Plugins {
		if cfg.Plugins[n].Disabled || config.IsBundled(cfg.Plugins[n].Module) {
			continue
		}
		path := cfg.Path(cfg.Plugins[n].Module)
		module, err := os.ReadFile(path)
		if err == nil {
			err = i.add(path, module)
		}
		errs = append(errs, exit.Under("config: "+cfg.PluginAt(n), err))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	cfg, err = i.setup(p.links, data)
	return i, cfg, err
}

// inFolder reports whether a path is in the folder of the config, where an agent may well write.
func (p *hookProfile) inFolder(path string) bool {
	rest, err := filepath.Rel(filepath.Dir(p.config), path)
	return err == nil && filepath.IsLocal(rest)
}

func (i *installed) add(path string, data []byte) error {
	i.Files[path] = program.HexSum(data)
	if err := os.MkdirAll(filepath.Dir(i.copyOf(path)), 0o700); err != nil {
		return err
	}
	return hook.WriteFile(i.copyOf(path), data)
}

// keep has an installation count from now on, and deletes the copies of others.
func (p *hookProfile) keep(i *installed) error {
	data, err := json.Marshal(i)
	if err == nil {
		err = hook.WriteFile(filepath.Join(p.dir, installedFile), data)
	}
	if err != nil {
		return err
	}
	sums := slices.Collect(maps.Values(i.Files))
	entries, _ := os.ReadDir(i.copies)
	for _, e := range entries {
		if !slices.Contains(sums, e.Name()) {
			_ = os.RemoveAll(filepath.Join(i.copies, e.Name()))
		}
	}
	return nil
}

// changed lists the files that are not what is installed. What an agent could put in their place is not waited for, and not
// read beyond the size of the copy.
func (i *installed) changed() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(i.Files)), i.same)
}

func (i *installed) same(path string) bool {
	own, err := os.Stat(i.copyOf(path))
	if err != nil {
		return false
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() != own.Size() {
		return false
	}
	data, err := io.ReadAll(io.LimitReader(f, own.Size()))
	return err == nil && program.HexSum(data) == i.Files[path]
}

// follows is what an installation that copies nothing has to be called.
const follows = "the files themselves count, so that anything that can write them decides"

// state is what the user should know of what is installed, empty for nothing.
func (p *hookProfile) state() string {
	i, err := p.installed()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case err != nil:
		return exit.Text(err)
	case i.Follow:
		return "--follow: " + follows
	}
	if changed := i.changed(); len(changed) > 0 {
		return strings.Join(changed, ", ") + differs
	}
	return ""
}

const differs = ": not what is installed, which still runs; to take it over: mortise hook install AGENT"

// note prints the state, once.
func (p *hookProfile) note(out io.Writer) {
	if s := p.state(); s != "" {
		fmt.Fprintln(out, "note:", s)
	}
}
