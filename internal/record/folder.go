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

// Errors for errors.Is.
var (
	// ErrUnknown is a run that the folder has no record of.
	ErrUnknown = errors.New("there is no record of it")
	// ErrAmbiguous is the beginning of more than one run's id.
	ErrAmbiguous = errors.New("it is the beginning of more than one id")
)

// Config says where records are, and how much of them.
type Config struct {
	// Dir is the folder. Required; it is made when it is not there.
	Dir string
	// Keep so many records, the newest, 1000 when 0.
	Keep int
	// FileBytes is about how large a record may grow, 8 MiB when 0.
	FileBytes int64
	// Source is written into each record.
	Source string
}

// suffix ends the names of records.
const suffix = ".jsonl"

// Folder is a folder of records.
type Folder struct {
	cfg  Config
	root *os.Root

	mu   sync.Mutex
	open map[string]*file
}

// Open makes the folder if need be, and removes the oldest records beyond
// Config.Keep.
func Open(cfg Config) (*Folder, error) {
	if cfg.Dir == "" {
		return nil, errors.New("record: Config.Dir is missing")
	}
	if cfg.Keep < 0 || cfg.FileBytes < 0 {
		return nil, fmt.Errorf("record: Config.Keep %d and Config.FileBytes %d must not be negative", cfg.Keep, cfg.FileBytes)
	}
	cfg.Keep, cfg.FileBytes = cmp.Or(cfg.Keep, 1000), cmp.Or(cfg.FileBytes, 8<<20)
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	f, err := Look(cfg.Dir)
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
	return &Folder{cfg: Config{Dir: dir}, root: root, open: make(map[string]*file)}, nil
}

// Dir is the folder's path.
func (f *Folder) Dir() string { return f.cfg.Dir }

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
		if !ok || !d.Type().IsRegular() || !validRun(run) {
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

// maxRunID bounds the id of a run, in bytes.
const maxRunID = 128

// validRun says whether a run's id can be the name of a file.
func validRun(id string) bool {
	for i := range len(id) {
		c := id[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && (i == 0 || c != '-' && c != '_' && c != '.') {
			return false
		}
	}
	return id != "" && len(id) <= maxRunID
}
