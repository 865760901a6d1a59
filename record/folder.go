package record

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// suffix ends the names of records.
const suffix = ".jsonl"

// Folder is a [Store] in a folder.
type Folder struct {
	dir  string
	cfg  Config
	root *os.Root

	mu   sync.Mutex
	open map[string]*file
}

var _ Store = (*Folder)(nil)

// Open makes the folder if need be, and removes the oldest records beyond
// Config.Keep.
func Open(dir string, cfg Config) (*Folder, error) {
	if dir == "" {
		return nil, errors.New("record: the folder's name is empty; name a folder")
	}
	cfg, err := cfg.Checked()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	f, err := Look(dir)
	if err != nil {
		return nil, err
	}
	f.cfg = cfg
	if err := f.prune(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Look opens a folder to read from. It makes nothing and removes nothing; a
// folder that is not there is fs.ErrNotExist.
func Look(dir string) (*Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	cfg, err := Config{}.Checked()
	return &Folder{dir: dir, cfg: cfg, root: root, open: make(map[string]*file)}, err
}

// Dir is the folder's path.
func (f *Folder) Dir() string { return f.dir }

// Close closes the folder, and the records that are still open.
func (f *Folder) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for id, file := range f.open {
		errs = append(errs, file.f.Close())
		delete(f.open, id)
	}
	return errors.Join(append(errs, f.root.Close())...)
}

// found is one record's file.
type found struct {
	run string
	at  time.Time
}

// files lists the records, newest first.
func (f *Folder) files() ([]found, error) {
	list, err := fs.ReadDir(f.root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	var out []found
	for _, d := range list {
		run, ok := strings.CutSuffix(d.Name(), suffix)
		if !ok || !d.Type().IsRegular() || CheckRun(run) != nil {
			continue
		}
		info, err := d.Info()
		if err != nil {
			continue // Another process removed it.
		}
		out = append(out, found{run: run, at: info.ModTime()})
	}
	slices.SortFunc(out, func(a, b found) int { return cmp.Or(b.at.Compare(a.at), strings.Compare(b.run, a.run)) })
	return out, nil
}

// prune removes the oldest records.
func (f *Folder) prune() error {
	list, err := f.files()
	if err != nil || len(list) <= f.cfg.Keep {
		return err
	}
	var errs []error
	for _, old := range list[f.cfg.Keep:] {
		if err := f.root.Remove(old.run + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("record: %w", err))
		}
	}
	return errors.Join(errs...)
}
