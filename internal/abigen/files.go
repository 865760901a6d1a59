package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// file is a generated file; its path is relative to the root of the repository.
type file struct {
	path string
	data []byte
}

// generate reads the abi package and what guests have copies of below root, and returns the generated files.
func generate(root string) ([]file, error) {
	pkg, err := load(filepath.Join(root, "abi"))
	if err != nil {
		return nil, err
	}
	types, err := pkg.renderTypes()
	if err != nil {
		return nil, err
	}
	codec, err := pkg.renderCodec()
	if err != nil {
		return nil, err
	}
	copies, err := copyFiles(root)
	if err != nil {
		return nil, err
	}
	return append([]file{
		{path: "sdk/go/abi_gen.go", data: types},
		{path: "sdk/go/codec_gen.go", data: codec},
	}, copies...), nil
}

// findRoot walks up from the working directory to the folder of the abi package.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("abigen: working directory: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "abi", "version.go")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("abigen: no folder above this one holds abi/version.go; run it inside the repository")
		}
		dir = parent
	}
}

func compare(root string, files []file) error {
	stale := []error{strays(root, files)}
	for _, f := range files {
		have, err := os.ReadFile(filepath.Join(root, f.path))
		if err != nil {
			stale = append(stale, fmt.Errorf("abigen: %s: %w", f.path, err))
			continue
		}
		if !bytes.Equal(have, f.data) {
			stale = append(stale, fmt.Errorf("abigen: %s: does not match the abi package; run go run ./internal/abigen", f.path))
		}
	}
	return errors.Join(stale...)
}

func write(root string, files []file, out io.Writer) error {
	if err := strays(root, files); err != nil {
		return err
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(root, f.path), f.data, 0o644); err != nil {
			return fmt.Errorf("abigen: %s: %w", f.path, err)
		}
		if _, err := fmt.Fprintf(out, "%s: %d bytes\n", f.path, len(f.data)); err != nil {
			return fmt.Errorf("abigen: output: %w", err)
		}
	}
	return nil
}
