package outbox

import (
	"errors"
	"fmt"
	"os"
)

// write takes an operation to the disk and then into the index. The operation is
// made under the lock, so that operations have the order of their numbers. Whoever
// finds no write under way writes for all that come meanwhile.
func (f *File) write(planned func() op) error {
	f.mu.Lock()
	if f.err != nil {
		defer f.mu.Unlock()
		return f.err
	}
	o := planned()
	line, err := encode(o)
	if err != nil {
		defer f.mu.Unlock()
		return fmt.Errorf("outbox: %w", err)
	}
	b := f.batch
	b.lines = append(b.lines, line...)
	b.ops = append(b.ops, o)
	b.grows = b.grows || o.Kind == opAppend // removals are taken even when the journal is full
	if f.writing {
		f.mu.Unlock()
		<-b.done
		return b.err
	}
	f.writing = true
	for len(f.batch.ops) > 0 {
		f.flush()
	}
	f.writing = false
	f.idle.Broadcast()
	f.mu.Unlock()
	return b.err
}

// flush writes what has been collected. The caller holds the lock; it is free
// during the write.
func (f *File) flush() {
	b := f.batch
	f.batch = newBatch()
	switch {
	case f.err != nil:
		b.err = f.err
	case b.grows && f.size+int64(len(b.lines)) > f.cfg.MaxBytes && !f.shrunk(int64(len(b.lines))):
		b.err = fmt.Errorf("outbox: journal %s: %w: it has %d bytes of %d", f.cfg.Path, ErrFull, f.size, f.cfg.MaxBytes)
	default:
		f.mu.Unlock()
		err := f.put(b.lines)
		f.mu.Lock()
		b.err = err
	}
	if b.err == nil {
		for _, o := range b.ops {
			f.index.apply(o)
			if o.Kind != opAppend {
				f.removals++
			}
		}
		f.size += int64(len(b.lines))
		if f.size > f.rewriteAt {
			f.shrunk(0)
			f.rewriteAt = max(f.cfg.RewriteBytes, 2*f.size)
		}
	}
	close(b.done)
}

// put appends to the file. When that fails halfway the file is cut to where it
// was; when even that fails, or the disk did not take it, nobody can say what the
// file holds, and the store takes nothing any more.
func (f *File) put(lines []byte) error {
	if _, err := f.file.Write(lines); err != nil {
		err = fmt.Errorf("outbox: journal %s: %w", f.cfg.Path, err)
		cut := f.file.Truncate(f.size)
		if cut == nil {
			_, cut = f.file.Seek(f.size, 0)
		}
		if cut != nil {
			f.fail(errors.Join(err, cut))
		}
		return err
	}
	if f.cfg.NoSync {
		return nil
	}
	if err := f.file.Sync(); err != nil {
		err = fmt.Errorf("outbox: journal %s: %w", f.cfg.Path, err)
		f.fail(err)
		return err
	}
	return nil
}

// fail closes the store to further changes.
func (f *File) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = fmt.Errorf("%w after: %w", ErrStoreClosed, err)
	}
}

// shrunk rewrites the journal when that makes it at most half as long, and reports
// whether there is room for more bytes then. The caller holds the lock; nobody
// else writes.
func (f *File) shrunk(more int64) bool {
	if f.removals == f.inVain {
		return false // nothing has been removed since it was tried
	}
	f.inVain = f.removals
	var lines []byte
	for _, o := range f.index.ops() {
		line, err := encode(o)
		if err != nil || int64(len(lines)+len(line)) > f.size/2 {
			return false
		}
		lines = append(lines, line...)
	}
	if err := f.replace(lines); err != nil {
		if f.err == nil {
			f.err = fmt.Errorf("%w after: rewrite: %w", ErrStoreClosed, err)
		}
		return false
	}
	return f.size+more <= f.cfg.MaxBytes
}

// replace puts lines in the place of the journal. Both files are closed for the
// rename, which not every system allows otherwise. When the new one cannot be
// written the old one stays and is no worse for it; an error means that there is
// none to write to. The caller holds the lock.
func (f *File) replace(lines []byte) error {
	next := f.cfg.Path + ".new"
	if err := writeNew(next, lines, f.cfg.NoSync); err != nil {
		_ = os.Remove(next) // it may be what filled the disk
		return nil          //nolint:nilerr // the old journal is as good as it was
	}
	if err := f.file.Close(); err != nil {
		return err
	}
	size := int64(len(lines))
	if err := os.Rename(next, f.cfg.Path); err != nil {
		size = f.size
	}
	file, err := os.OpenFile(f.cfg.Path, os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	f.file, f.size = file, size
	if _, err := file.Seek(size, 0); err != nil {
		return err
	}
	return syncFolder(f.cfg.Path)
}

func writeNew(path string, lines []byte, noSync bool) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err = file.Write(lines); err == nil && !noSync {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}
