package natsstore

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	reconnectWait = 250 * time.Millisecond
	pingInterval  = 5 * time.Second
)

// connect makes the connection, which reconnects until it is closed.
func connect(cfg Config) (*nats.Conn, error) {
	options := append([]nats.Option{
		nats.Name("mortise " + cfg.Stream), nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait), nats.ReconnectJitter(reconnectWait, reconnectWait),
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

// redact removes the credentials of the URLs from an error. An error without any is returned as it is.
func redact(servers string, err error) error {
	if err == nil {
		return nil
	}
	clean := err.Error()
	for server := range strings.SplitSeq(servers, ",") {
		for _, secret := range secrets(strings.TrimSpace(server)) {
			clean = strings.ReplaceAll(clean, secret, "xxxxx")
		}
	}
	if clean == err.Error() {
		return err
	}
	return errors.New(clean)
}

// secrets are the texts of a URL that must not be logged, as written and decoded.
func secrets(server string) (list []string) {
	if _, rest, ok := strings.Cut(server, "://"); ok {
		server = rest
	}
	at := strings.LastIndex(server, "@")
	if at <= 0 {
		return nil
	}
	user, password, _ := strings.Cut(server[:at], ":")
	secret := password
	if secret == "" {
		secret = user // a token
	}
	list = append(list, server[:at], secret)
	if plain, err := url.PathUnescape(secret); err == nil {
		list = append(list, plain)
	}
	return list
}
