package natsstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// wanted keeps the latest record of each subject for ever. Reads go to the leader: others may
// run behind.
func (s *Store) wanted() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: s.cfg.Name, Subjects: []string{s.names.all()}, MaxMsgsPerSubject: 1, AllowMsgTTL: true,
	}
}

// checkServers warns about what may lose acknowledged records.
func (s *Store) checkServers(ctx context.Context) {
	if len(s.cfg.Monitor) == 0 {
		s.cfg.warnings.WarnContext(ctx, "natsstore_sync_unknown", "stream", s.cfg.Name,
			"hint", "a power cut loses what was acknowledged unless jetstream has sync_interval: always, which a client sees at the monitoring address only")
	}
	for _, address := range s.cfg.Monitor {
		always, err := s.syncs(ctx, address)
		switch {
		case err != nil:
			s.cfg.warnings.WarnContext(ctx, "natsstore_sync_unknown", "server", withoutUser(address), "error", redact(address, err))
		case !always:
			s.cfg.warnings.WarnContext(ctx, "natsstore_not_synced", "server", withoutUser(address),
				"hint", "a power cut loses what was acknowledged; set sync_interval: always in the jetstream block of the server")
		}
	}
}

const maxReport = 1 << 20

// syncs asks the monitoring of a server whether it writes before it acknowledges.
func (s *Store) syncs(ctx context.Context, address string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Wait)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/")+"/jsz", http.NoBody)
	if err != nil {
		return false, errors.New("natsstore: Config.Monitor has an address that is no URL")
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, fmt.Errorf("natsstore: monitoring: %w", err)
	}
	defer answer.Body.Close()
	var report struct {
		Config struct {
			SyncAlways bool `json:"sync_always"`
		} `json:"config"`
	}
	if answer.StatusCode != http.StatusOK {
		return false, fmt.Errorf("natsstore: monitoring answers %s", answer.Status)
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxReport)).Decode(&report); err != nil {
		return false, fmt.Errorf("natsstore: monitoring: %w", err)
	}
	return report.Config.SyncAlways, nil
}

func withoutUser(address string) string { return withoutSecrets(address, address) }
