package natsstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// checkServers warns about servers that may lose what they acknowledged.
func (s *Store) checkServers(ctx context.Context) {
	const hint = "a power cut loses what was acknowledged unless the jetstream block of the servers has sync_interval: always"
	if len(s.cfg.Monitor) == 0 {
		s.cfg.warnings.WarnContext(ctx, "natsstore_sync_unknown", "stream", s.cfg.Stream, "hint", hint+"; give Config.Monitor to check it")
	}
	for _, address := range s.cfg.Monitor {
		always, err := s.syncs(ctx, address)
		switch {
		case err != nil:
			s.cfg.warnings.WarnContext(ctx, "natsstore_sync_unknown", "server", redact(address, errors.New(address)), "error", redact(address, err))
		case !always:
			s.cfg.warnings.WarnContext(ctx, "natsstore_not_synced", "server", redact(address, errors.New(address)), "hint", hint)
		}
	}
}

const maxReport = 1 << 20

// syncs asks the monitoring of a server whether it writes to the disk before it acknowledges.
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
	if answer.StatusCode != http.StatusOK {
		return false, fmt.Errorf("natsstore: monitoring answers %s", answer.Status)
	}
	var report struct {
		Config struct {
			SyncAlways bool `json:"sync_always"`
		} `json:"config"`
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxReport)).Decode(&report); err != nil {
		return false, fmt.Errorf("natsstore: monitoring: %w", err)
	}
	return report.Config.SyncAlways, nil
}
