// Command abigen writes the Go SDK's copy of the abi package and its codec, and the guests' copies of the
// keeper of ledgers and of the rule of costs.
//
//	go run ./internal/abigen         writes sdk/go/abi_gen.go, sdk/go/codec_gen.go and the copies below summarizers/modules
//	go run ./internal/abigen -check  compares them and fails when they are stale
//
// It runs in any folder of the repository.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("abigen", flag.ContinueOnError)
	flags.SetOutput(stderr)
	check := flags.Bool("check", false, "compare instead of write")
	root := flags.String("root", "", "root of the repository; found from the working directory when empty")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("abigen: arguments: %w", err)
	}
	if *root == "" {
		found, err := findRoot()
		if err != nil {
			return err
		}
		*root = found
	}
	files, err := generate(*root)
	if err != nil {
		return err
	}
	if *check {
		return compare(*root, files)
	}
	return write(*root, files, stdout)
}
