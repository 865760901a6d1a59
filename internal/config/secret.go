package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
)

// maxSecret bounds the value of a secret, in bytes. It is that of the host.
const maxSecret = 4 << 10

// Variable is the value of an environment variable, which must not be empty.
func Variable(name string) (string, error) {
	value := os.Getenv(name)
	if value == "" {
		return "", fmt.Errorf("the variable %.80q is empty", name)
	}
	return value, nil
}

// PrivateFile returns the content of a file without the line break at its end.
func PrivateFile(path string) (string, error) {
	f, err := OpenPrivate(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+3))
	if err != nil {
		return "", fmt.Errorf("file: %w", err)
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	switch {
	case value == "":
		return "", fmt.Errorf("file: %s is empty", path)
	case len(value) > maxSecret:
		return "", fmt.Errorf("file: %s has more than %d bytes", path, maxSecret)
	}
	return value, nil
}

// OpenPrivate opens a file that no other user can read or write. It looks first, because opening a
// pipe would wait for a writer.
func OpenPrivate(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("file: %s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("file: %w", err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		err = fmt.Errorf("file: %w", err)
	case !info.Mode().IsRegular():
		err = fmt.Errorf("file: %s is not a regular file", path)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		err = fmt.Errorf("file: %s: others can use the file (mode %s); use chmod 600", path, info.Mode().Perm())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
