package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/exit"
)

// Serve listens until ctx is done, and then drains.
func (p *Program) Serve(ctx context.Context, out io.Writer, hangups <-chan os.Signal) error {
	cfg := &p.Cfg.Serve
	api, err := Listen(ctx, "serve.listen", cfg.Listen)
	if err != nil {
		return err
	}
	defer api.Close()
	admin, err := Listen(ctx, "serve.admin", cfg.Admin)
	if err != nil {
		return err
	}
	defer admin.Close()
	if err := p.Runtime.Start(ctx); err != nil {
		return err
	}
	failed := make(chan error, 3)
	var servers []*http.Server
	if p.proxy != nil {
		forward, address, err := p.serveProxy(ctx, failed)
		if err != nil {
			return err
		}
		servers = append(servers, forward)
		fmt.Fprintf(out, "proxy http://%s\n", address)
	}
	servers = append(servers, p.listenOn(api, p.server.Public(), failed), p.listenOn(admin, p.server.Admin(), failed))
	fmt.Fprintf(out, "api http://%s\nadmin http://%s\n", api.Addr(), admin.Addr())
	p.logger.InfoContext(ctx, "serving", "api", api.Addr().String(), "admin", admin.Addr().String(), "store", cmp.Or(config.Shown(p.Cfg.Store), "memory"))
	err = p.wait(ctx, hangups, failed)
	return errors.Join(err, p.drain(context.WithoutCancel(ctx), servers))
}

// wait returns when the program should end. Meanwhile SIGHUP reloads the config.
func (p *Program) wait(ctx context.Context, hangups <-chan os.Signal, failed <-chan error) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case <-hangups:
			_, _ = p.reload(ctx) // it is logged
		}
	}
}

func (p *Program) listenOn(l net.Listener, h http.Handler, failed chan<- error) *http.Server {
	server := p.server.HTTP(h)
	p.listeners.Go(func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("serve: %w", err)
		}
	})
	return server
}

// DefaultGrace is how long shutdown waits for runs under way.
const DefaultGrace = 20 * time.Second

// drain stops claiming, ends streams with a hint to come back, and waits for runs to end. After the grace time those under way are asked to
// end, and handed over.
func (p *Program) drain(ctx context.Context, servers []*http.Server) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(time.Duration(p.Cfg.Serve.Grace), DefaultGrace))
	defer cancel()
	p.logger.InfoContext(ctx, "draining", "executing", len(p.Runtime.Mailbox().Executing()))
	errs := []error{p.server.Drain(ctx)}
	if ctx.Err() != nil {
		errs = append(errs, p.Runtime.Mailbox().Close(ctx))
	}
	for _, s := range servers {
		if err := s.Shutdown(ctx); err != nil {
			errs = append(errs, s.Close())
		}
	}
	p.listeners.Wait()
	if err := errors.Join(errs...); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// Listen listens on the address of a key of the config.
func Listen(ctx context.Context, key, address string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, exit.With(exit.Config, fmt.Errorf("%s: %w; name another address", key, err))
	}
	return l, nil
}

// CloseTimeout bounds the end of a command.
const CloseTimeout = 10 * time.Second
