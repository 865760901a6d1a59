package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// platforms returns those that a release is built for.
func platforms() []string {
	return []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"}
}

// commands returns the programs of an archive.
func commands() []string { return []string{"mortise", "mortise-hook"} }

// documents returns the other files of an archive.
func documents() []string { return []string{"LICENSE", "README.md"} }

// sbomTool lists the modules that are linked into a binary, in CycloneDX's format.
const sbomTool = "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0"

// build writes an archive and an SBOM for each platform, and SHA256SUMS of all of them.
func build(ctx context.Context, log io.Writer, version, out string, targets []string) error {
	if !semver.IsValid(version) {
		return fmt.Errorf("version %q is no semantic version such as v1.2.3", version)
	}
	for _, t := range targets {
		if !slices.Contains(platforms(), t) {
			return fmt.Errorf("platform %q is none of %s", t, strings.Join(platforms(), ", "))
		}
	}
	at, err := commitTime(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(out), os.MkdirAll(out, 0o755)); err != nil { //nolint:gosec // archives are public
		return err
	}
	var names []string
	for _, t := range targets {
		made, err := buildTarget(ctx, version, out, t, at)
		if err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		fmt.Fprintln(log, strings.Join(made, " "))
		names = append(names, made...)
	}
	return writeSums(out, names)
}

// buildTarget returns the names of the archive and the SBOM that it wrote.
func buildTarget(ctx context.Context, version, out, target string, at time.Time) ([]string, error) {
	goos, goarch, _ := strings.Cut(target, "/")
	work, err := os.MkdirTemp("", "release-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	env := append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	suffix := ""
	if goos == "windows" {
		suffix = ".exe"
	}
	files := make([]file, 0, len(commands())+len(documents()))
	for _, c := range commands() {
		path := filepath.Join(work, c+suffix)
		if err := command(ctx, ".", env, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -X github.com/mortise-dev/mortise/internal/program.release="+version, "-o", path, "./cmd/"+c); err != nil {
			return nil, err
		}
		files = append(files, file{path: path, name: c + suffix, mode: 0o755})
	}
	for _, d := range documents() {
		files = append(files, file{path: d, name: d, mode: 0o644})
	}
	base := fmt.Sprintf("mortise_%s_%s_%s", version, goos, goarch)
	archive, pack := base+".tar.gz", writeTar
	if goos == "windows" {
		archive, pack = base+".zip", writeZip
	}
	if err := pack(filepath.Join(out, archive), base, files, at); err != nil {
		return nil, err
	}
	sbom := base + ".cdx.json"
	if err := command(ctx, ".", os.Environ(), "go", "run", sbomTool, "bin", "-json", "-noserial", "-version", version, "-output", filepath.Join(out, sbom), files[0].path); err != nil {
		return nil, err
	}
	return []string{archive, sbom}, nil
}

// writeSums writes SHA256SUMS, which sha256sum -c reads.
func writeSums(out string, names []string) error {
	slices.Sort(names)
	var sums strings.Builder
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(out, name)) //nolint:gosec // written above
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), name)
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(sums.String()), 0o644) //nolint:gosec // public
}

// commitTime returns the time of the commit, which is that of all files in the archives.
func commitTime(ctx context.Context) (time.Time, error) {
	text, err := git(ctx, ".", "log", "-1", "--format=%ct")
	if err != nil {
		return time.Time{}, err
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(seconds, 0).UTC(), err
}

// git returns what a git command prints.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "git", args...) //nolint:gosec // arguments are ours
	c.Dir = dir
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

// command runs a command and adds what it printed to its error.
func command(ctx context.Context, dir string, env []string, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...) //nolint:gosec // arguments are ours
	c.Dir, c.Env = dir, env
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
