package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is main without the process around it.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	flags := flag.NewFlagSet("guestbuild", flag.ContinueOnError)
	flags.SetOutput(errs)
	check := flags.Bool("check", false, "build into a temporary folder and compare with testdata/guests")
	only := flags.String("only", "", "build the guest of this name alone")
	root := flags.String("root", "", "root of the repository (default: found from the working directory)")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	b, err := newBuilder(*root, *only, out)
	if err != nil {
		fmt.Fprintln(errs, err)
		return 2
	}
	if *check {
		err = b.check(ctx)
	} else {
		err = b.write(ctx)
	}
	if err != nil {
		fmt.Fprintln(errs, err)
		return 1
	}
	return 0
}

// errDiffer is returned when a built guest is not the committed one.
var errDiffer = errors.New("guestbuild: guests differ from testdata/guests; run go run ./internal/guestbuild")
