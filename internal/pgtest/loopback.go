package pgtest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
)

// Loopback is like [New], and the server also listens on a free port of 127.0.0.1, where it asks for the password. With a certificate
// and its key, in PEM, it speaks TLS there, and nothing else.
func Loopback(ctx context.Context, cert, key []byte, settings ...string) (*Server, error) {
	port, err := free(ctx)
	if err != nil {
		return nil, err
	}
	s := &Server{port: port, cert: cert, key: key}
	s.settings = append([]string{"listen_addresses=127.0.0.1"}, settings...)
	return start(ctx, s)
}

// free finds an unused port.
func free(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("pgtest: %w", err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// certify gives the server its certificate, if it has one.
func (s *Server) certify() error {
	if s.cert == nil {
		return nil
	}
	cert, key, access := filepath.Join(s.dir, "server.crt"), filepath.Join(s.dir, "server.key"), filepath.Join(s.dir, "access")
	for path, data := range map[string][]byte{
		cert: s.cert, key: s.key, access: []byte("local all all scram-sha-256\nhostssl all all 127.0.0.1/32 scram-sha-256\n"),
	} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return fmt.Errorf("pgtest: %w", err)
		}
		if err := give(path); err != nil {
			return fmt.Errorf("pgtest: %w", err)
		}
	}
	s.settings = append(s.settings, "ssl=on", "ssl_cert_file="+cert, "ssl_key_file="+key, "hba_file="+access)
	return nil
}

// LoopbackURL is the address of a server of [Loopback] over TCP, with the password and such parameters as sslmode.
func (s *Server) LoopbackURL(parameters url.Values) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword("mortise", s.password), Host: net.JoinHostPort("127.0.0.1", s.port), Path: "/postgres", RawQuery: parameters.Encode()}
	return u.String()
}

// socket is the port that names the Unix socket in a server's folder.
func (s *Server) socket() string {
	if s.port != "" {
		return s.port
	}
	return strconv.Itoa(defaultPort)
}

const defaultPort = 5432
