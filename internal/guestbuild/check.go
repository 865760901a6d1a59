package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// write builds into testdata/guests and records sums and toolchain. With -only,
// the sums of the other guests stay.
func (b *builder) write(ctx context.Context) error {
	folder := filepath.Join(b.root, outputDir)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("guestbuild: %s: %w", outputDir, err)
	}
	version, err := b.toolchain(ctx)
	if err != nil {
		return err
	}
	if err := b.build(ctx, folder); err != nil {
		return err
	}
	sums, err := readSums(filepath.Join(folder, sumsFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if sums == nil {
		sums = map[string]string{}
	}
	for _, g := range b.list {
		sum, err := sumFile(filepath.Join(folder, g.name+".wasm"))
		if err != nil {
			return err
		}
		sums[g.name+".wasm"] = sum
	}
	if err := b.bundle(folder); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, sumsFile), formatSums(sums), 0o644); err != nil {
		return fmt.Errorf("guestbuild: %s: %w", sumsFile, err)
	}
	if err := os.WriteFile(filepath.Join(folder, toolchainFile), []byte(version+"\n"), 0o644); err != nil {
		return fmt.Errorf("guestbuild: %s: %w", toolchainFile, err)
	}
	return nil
}

// check builds elsewhere and names every guest whose bytes, file or sum differ.
func (b *builder) check(ctx context.Context) error {
	temp, err := os.MkdirTemp("", "guestbuild")
	if err != nil {
		return fmt.Errorf("guestbuild: temporary folder: %w", err)
	}
	defer os.RemoveAll(temp)
	if err := b.build(ctx, temp); err != nil {
		return err
	}
	folder := filepath.Join(b.root, outputDir)
	version, err := b.toolchain(ctx)
	if err != nil {
		return err
	}
	made, err := os.ReadFile(filepath.Join(folder, toolchainFile))
	if err != nil {
		return fmt.Errorf("guestbuild: %s: %w", toolchainFile, err)
	}
	if want := strings.TrimSpace(string(made)); want != version {
		b.say("WARNING: NOTHING WAS COMPARED. The guests were built by %s, this is %s; other toolchains give other bytes.", want, version)
		return nil
	}
	sums, err := readSums(filepath.Join(folder, sumsFile))
	if err != nil {
		return err
	}
	return b.compare(temp, folder, sums)
}

func (b *builder) compare(temp, folder string, sums map[string]string) error {
	var errs []error
	for _, g := range b.list {
		name := g.name + ".wasm"
		fresh, err := sumFile(filepath.Join(temp, name))
		if err != nil {
			return err
		}
		kept, err := sumFile(filepath.Join(folder, name))
		switch {
		case err != nil:
			errs = append(errs, err)
		case kept != fresh:
			errs = append(errs, fmt.Errorf("guestbuild: %s: the committed file is not what the sources give", name))
		case sums[name] != fresh:
			errs = append(errs, fmt.Errorf("guestbuild: %s: %s says otherwise", name, sumsFile))
		case !b.bundleIsFresh(g, temp):
			errs = append(errs, fmt.Errorf("guestbuild: %s: %s does not hold what the sources give", name, bundleDir))
		default:
			b.say("%-12s same", g.name)
		}
	}
	if len(errs) > 0 {
		return errors.Join(append(errs, errDiffer)...)
	}
	return nil
}

func sumFile(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("guestbuild: %s: %w", filepath.Base(path), err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// readSums reads the format of sha256sum.
func readSums(path string) (map[string]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("guestbuild: %s: %w", filepath.Base(path), err)
	}
	sums := map[string]string{}
	for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		sum, name, ok := strings.Cut(line, "  ")
		if !ok || len(sum) != 2*sha256.Size {
			return nil, fmt.Errorf("guestbuild: %s: line %d is not a checksum", filepath.Base(path), i+1)
		}
		sums[name] = sum
	}
	return sums, nil
}

func formatSums(sums map[string]string) []byte {
	var out []byte
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		out = append(out, sums[name]+"  "+name+"\n"...)
	}
	return out
}
