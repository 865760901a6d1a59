package compile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/tetratelabs/wazero"

	"github.com/mortise-dev/mortise/internal/engine"
)

// cacheFormat names the folder of compiled code. It carries the version of
// wazero, because native code of another version must not be run.
const cacheFormat = "v1-wazero1.12.0"

// settle has wazero look up its version, which it does the first time without a lock.
var settle = sync.OnceFunc(func() { //nolint:gochecknoglobals // as the version is
	ctx := context.Background() //nolint:forbidigo // nothing waits here
	_ = wazero.NewRuntime(ctx).Close(ctx)
})

// DiskCache is the folder of compiled code. A nil diskCache keeps nothing.
type DiskCache struct{ Dir, marks string }

// OpenCache makes the folders and refuses those that others can write to.
func OpenCache(root, name string) (*DiskCache, error) {
	settle()
	if root == "" {
		return nil, nil //nolint:nilnil // no folder, no cache
	}
	c := &DiskCache{Dir: filepath.Join(root, cacheFormat+"-"+name)}
	c.marks = filepath.Join(c.Dir, "known")
	if err := os.MkdirAll(c.marks, 0o700); err != nil {
		return nil, fmt.Errorf("host: config: CacheDir %s: %w", root, err)
	}
	for _, dir := range []string{root, c.Dir, c.marks} {
		info, err := os.Stat(dir)
		if err != nil {
			return nil, fmt.Errorf("host: config: CacheDir %s: %w", root, err)
		}
		if runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
			return nil, fmt.Errorf("host: config: CacheDir: others can write to %s, and so run code here; use chmod 700", dir)
		}
	}
	return c, nil
}

// Code opens the compiled code for one module. One for all would keep the code of closed modules in memory.
func (c *DiskCache) Code(module string) (cache wazero.CompilationCache, err error) {
	if c == nil {
		return wazero.NewCompilationCache(), nil
	}
	if cache, err = wazero.NewCompilationCacheWithDir(c.Dir); err != nil {
		return nil, fmt.Errorf("host: module %q: %w: compilation cache: %w", module, engine.ErrEngine, err)
	}
	return cache, nil
}

// Has reports whether a binary was compiled into the folder before.
func (c *DiskCache) Has(sha string) bool {
	if c == nil {
		return false
	}
	_, err := os.Stat(filepath.Join(c.marks, sha))
	return err == nil
}

// Add remembers a compiled binary. It is a hint, so a fault does no harm beyond
// a wrong hint.
func (c *DiskCache) Add(sha string) error {
	if c == nil {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(c.marks, sha), os.O_CREATE|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}
