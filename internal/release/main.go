// Command release builds what a release of mortise consists of, and checks that the module can be used as a dependency.
//
//	go run ./internal/release -version v1.2.3    archives, SBOMs and checksums into dist/
//	go run ./internal/release -check             the module's zip, go install and an embedder's build
//
// The archives depend on the commit, the version and the Go toolchain alone: two builds of one commit are equal byte for byte.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, log io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	version := flags.String("version", "", "version to build, such as v1.2.3 (default: the tag of the commit)")
	out := flags.String("out", "dist", "folder of the archives; what a build wrote there before is replaced")
	only := flags.String("platforms", strings.Join(platforms(), ","), "platforms to build, as os/arch, separated by commas")
	check := flags.Bool("check", false, "serve the commit as a module, install the command from it and build an embedder")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *check {
		return checkModule(ctx, log, ".")
	}
	if *version == "" {
		tag, err := git(ctx, ".", "describe", "--tags", "--exact-match", "--match", "v*")
		if err != nil {
			return errors.New("this commit has no tag v*: give -version")
		}
		*version = tag
	}
	return build(ctx, log, *version, *out, strings.Split(*only, ","))
}
