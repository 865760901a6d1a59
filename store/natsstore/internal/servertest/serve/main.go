// Command serve runs a NATS server with JetStream on loopback until its input ends. It keeps what it is given in the folder that its
// argument names, and prints its URL. See servertest.Apart.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

func main() {
	if err := serve(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

func serve(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%d arguments; name a folder", len(args))
	}
	s, err := servertest.Start(servertest.Options(args[0]))
	if err != nil {
		return err
	}
	fmt.Println(s.ClientURL())
	_, err = io.Copy(io.Discard, os.Stdin)
	s.Shutdown()
	s.WaitForShutdown()
	return err
}
