// Command warm compiles the guests of testdata/guests into the caches that the tests use. Under the
// race detector a guest takes ten times as long to compile, and each test would begin with that.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/http"
	"github.com/mortise-dev/mortise/host/capability/kv"
	"github.com/mortise-dev/mortise/host/capability/model"
	"github.com/mortise-dev/mortise/host/extismengine"
)

func main() {
	if err := warm(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "warm:", err)
		os.Exit(1)
	}
}

func warm(ctx context.Context) error {
	dir, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	guests, err := filepath.Glob(filepath.Join("testdata", "guests", "*.wasm"))
	if err != nil || len(guests) == 0 {
		return errors.Join(err, errors.New("there are no guests in testdata/guests; run it in the root of the repository"))
	}
	return errors.Join(
		compile(ctx, nil, filepath.Join(dir, "mortise-test"), guests), // of packages
		compile(ctx, extismengine.New(), filepath.Join(dir, "mortise-test"), guests),
		compile(ctx, nil, filepath.Join(dir, "mortise"), guests), // of the command
	)
}

// compile loads each guest with all that it imports.
func compile(ctx context.Context, e host.Engine, cache string, guests []string) error {
	h, err := host.New(host.Config{Engine: e, CacheDir: cache})
	if err != nil {
		return err
	}
	grants := host.Grants{Capabilities: []host.Capability{&kv.Grant{Store: kv.NewMemory(), Namespace: "warm"}, &model.Grant{Ask: func(context.Context, []byte) ([]byte, error) { return nil, host.ErrNotGranted }}, &http.Grant{Hosts: []string{"example.com"}}}}
	for _, path := range guests {
		if _, err := h.Load(ctx, host.Spec{Path: path, Grants: grants}); err != nil {
			return errors.Join(err, h.Close(ctx))
		}
	}
	return h.Close(ctx)
}
