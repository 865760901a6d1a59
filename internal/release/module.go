package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const (
	modulePath  = "github.com/mortise-dev/mortise"
	testVersion = "v0.0.0-test"
)

// embedder is a program of another module that makes a host.
const embedder = `package main

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
)

func main() {
	h, err := host.New(host.Config{})
	if err != nil {
		panic(err)
	}
	defer h.Close(context.Background())
	fmt.Println("ABI", abi.Version)
}
`

// checkModule serves the commit as a module from a folder, as a module proxy does, installs the command from it and builds an embedder against it.
// A replace directive, or a file that the module's zip lacks and a build needs, makes it fail.
func checkModule(ctx context.Context, log io.Writer, repo string) error {
	work, err := os.MkdirTemp("", "module-*")
	if err != nil {
		return err
	}
	defer func() { _ = removeModules(work) }()
	size, err := serveModule(ctx, repo, filepath.Join(work, "proxy"))
	if err != nil {
		return err
	}
	fmt.Fprintf(log, "module zip: %d bytes\n", size)
	env, err := environment(ctx, work)
	if err != nil {
		return err
	}
	if err := command(ctx, work, env, "go", "install", "-trimpath", modulePath+"/cmd/mortise@"+testVersion); err != nil {
		return err
	}
	c := exec.CommandContext(ctx, filepath.Join(work, "bin", "mortise"), "version") //nolint:gosec // built above
	out, err := c.Output()
	if err != nil || !strings.Contains(string(out), testVersion) {
		return fmt.Errorf("mortise version prints %q: %w", out, errors.Join(err, errors.New("want version "+testVersion)))
	}
	fmt.Fprintf(log, "go install: %s", out)
	return checkEmbedder(ctx, log, filepath.Join(work, "embedder"), env)
}

// checkEmbedder writes a program of another module, and builds and runs it.
func checkEmbedder(ctx context.Context, log io.Writer, dir string, env []string) error {
	err := errors.Join(
		os.MkdirAll(dir, 0o700),
		os.WriteFile(filepath.Join(dir, "main.go"), []byte(embedder), 0o600),
		os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module embedder\n\ngo 1.26.0\n\nrequire "+modulePath+" "+testVersion+"\n"), 0o600),
	)
	if err != nil {
		return err
	}
	for _, args := range [][]string{{"mod", "tidy"}, {"build", "-trimpath", "-o", "embedder", "."}} {
		if err := command(ctx, dir, env, "go", args...); err != nil {
			return err
		}
	}
	if err := command(ctx, dir, env, filepath.Join(dir, "embedder")); err != nil {
		return err
	}
	list := exec.CommandContext(ctx, "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".")
	list.Dir, list.Env = dir, env
	out, err := list.Output()
	fmt.Fprintf(log, "an embedder of host: go mod tidy, go build, %d packages beyond the standard library\n", len(strings.Fields(string(out))))
	return err
}

// serveModule writes the files of a module proxy (https://go.dev/ref/mod#goproxy-protocol) and returns the size of the zip.
func serveModule(ctx context.Context, repo, proxy string) (int64, error) {
	dir := filepath.Join(proxy, modulePath, "@v")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, err
	}
	mod, err := os.ReadFile(filepath.Join(repo, "go.mod")) //nolint:gosec // of the repository
	if err != nil {
		return 0, err
	}
	parsed, err := modfile.Parse("go.mod", mod, nil)
	if err != nil {
		return 0, err
	}
	if n := len(parsed.Replace) + len(parsed.Exclude); n > 0 {
		return 0, fmt.Errorf("go.mod has %d directives replace and exclude, which go install refuses", n)
	}
	root := filepath.Join(proxy, "clone") // a work tree or a folder with changes would not do
	if _, err := git(ctx, repo, "clone", "--quiet", "--no-checkout", ".", root); err != nil {
		return 0, err
	}
	base := filepath.Join(dir, testVersion)
	err = errors.Join(
		os.WriteFile(base+".mod", mod, 0o600),
		os.WriteFile(base+".info", []byte(`{"Version":"`+testVersion+`"}`), 0o600),
		os.WriteFile(filepath.Join(dir, "list"), []byte(testVersion+"\n"), 0o600),
		create(base+".zip", func(w io.Writer) error {
			return zip.CreateFromVCS(w, module.Version{Path: modulePath, Version: testVersion}, root, "HEAD", "")
		}),
	)
	if err != nil {
		return 0, err
	}
	info, err := os.Stat(base + ".zip")
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// environment is that of a machine that has never built mortise: a module cache of its own, filled from the folder, from what this machine
// has downloaded already, and from its proxy.
func environment(ctx context.Context, work string) ([]string, error) {
	c := exec.CommandContext(ctx, "go", "env", "GOMODCACHE", "GOPROXY")
	out, err := c.Output()
	if err != nil {
		return nil, err
	}
	cache, proxy, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return append(os.Environ(),
		"GOMODCACHE="+filepath.Join(work, "mod"),
		"GOBIN="+filepath.Join(work, "bin"),
		"GOPROXY=file://"+filepath.ToSlash(filepath.Join(work, "proxy"))+",file://"+filepath.ToSlash(filepath.Join(cache, "cache", "download"))+","+proxy,
		"GONOSUMDB="+modulePath+",*", // go.sum of the module has the sums; the folder of downloads has no signatures
		"GOFLAGS=-mod=mod", "GOWORK=off",
	), nil
}

// removeModules removes a folder with a module cache, whose files are read-only.
func removeModules(dir string) error {
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o700) //nolint:gosec // a folder that is removed next
		}
		return err
	})
	return errors.Join(err, os.RemoveAll(dir))
}
