package mailbox

import "github.com/mortise-dev/mortise/internal/queue"

// Queue returns the queue below a mailbox.
func (m *Mailbox) Queue() *queue.Queue { return m.queue }
