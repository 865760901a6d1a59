package natsstore

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/nats-io/nats.go"
)

// connect makes the connection. It goes on for ever once it was there.
func connect(cfg Config) (*nats.Conn, error) {
	options := append([]nats.Option{
		nats.Name("mortise mailbox " + cfg.Name), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectWait), nats.ReconnectJitter(reconnectWait, reconnectWait),
		nats.PingInterval(pingInterval), nats.MaxPingsOutstanding(2), nats.Timeout(cfg.Wait),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				cfg.Logger.Warn("natsstore_disconnected", "error", redact(cfg.URL, err))
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			cfg.Logger.Warn("natsstore_connection", "error", redact(cfg.URL, err))
		}),
	}, cfg.Options...)
	nc, err := nats.Connect(cfg.URL, options...)
	if err != nil {
		return nil, fmt.Errorf("natsstore: connect: %w", redact(cfg.URL, err))
	}
	return nc, nil
}

// redact takes credentials out of an error. Errors without any stay as they are.
func redact(servers string, err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	clean := text
	for server := range strings.SplitSeq(servers, ",") {
		clean = withoutSecrets(clean, strings.TrimSpace(server))
	}
	if clean == text {
		return err
	}
	return errors.New(clean)
}

// withoutSecrets replaces what stands before the @ of a URL, and each part of it.
func withoutSecrets(text, server string) string {
	if i := strings.Index(server, "://"); i >= 0 {
		server = server[i+3:]
	}
	at := strings.LastIndex(server, "@")
	if at <= 0 {
		return text
	}
	user, password, _ := strings.Cut(server[:at], ":")
	secrets := []string{server[:at], password}
	if password == "" {
		secrets = append(secrets, user) // a token
	}
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		text = strings.ReplaceAll(text, secret, "xxxxx")
		if plain, err := url.PathUnescape(secret); err == nil {
			text = strings.ReplaceAll(text, plain, "xxxxx")
		}
	}
	return text
}
