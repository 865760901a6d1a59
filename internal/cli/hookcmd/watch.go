package hookcmd

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// watch is what a daemon knows of the files that it runs.
type watch struct {
	profile *hookProfile
	logger  *slog.Logger

	mu sync.Mutex
	// known are the stamps of the installation and of the config, which name the other files.
	known string
	now   *installed
	files []string
	// compared are the stamps of files that were compared with what is installed, said the stamp of an installation from which
	// files differ, which is logged once.
	compared, said string
}

// print returns another text when something else is installed. Where files are followed, it is another one when they change;
// otherwise that is logged.
func (w *watch) print() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	own := stamp(filepath.Join(w.profile.dir, installedFile))
	if known := own + stamp(w.profile.config); known != w.known {
		w.known = known
		w.read()
	}
	var all strings.Builder
	for _, f := range w.files {
		all.WriteString(stamp(f))
	}
	switch files := all.String(); {
	case w.now == nil || w.said == own:
	case w.now.Follow:
		return own + files
	case files != w.compared:
		w.compared = files
		if changed := w.now.changed(); len(changed) > 0 {
			w.said = own
			w.logger.Warn("files are not what is installed, which still runs", "files", changed, "hint", "mortise hook install")
		}
	}
	return own
}

// read reads what is installed, and which files that names. W.mu is held.
func (w *watch) read() {
	var err error
	if w.now, err = w.profile.installed(); err != nil {
		w.now, w.files = nil, nil
		return
	}
	w.files = slices.Sorted(maps.Keys(w.now.Files))
	if !w.now.Follow {
		return
	}
	w.files = []string{w.profile.config}
	if cfg, err := w.profile.links.Load(w.profile.config); err == nil {
		for i := range cfg.Plugins {
			w.files = append(w.files, cfg.Path(cfg.Plugins[i].Module))
		}
	}
}

// stamp changes when a file does.
func stamp(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return path + ": none\n"
	}
	return path + " " + strconv.FormatInt(info.ModTime().UnixNano(), 36) + " " + strconv.FormatInt(info.Size(), 36) + "\n"
}
