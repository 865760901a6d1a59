package agentrun

import "github.com/mortise-dev/mortise/agent"

// Reread returns a ticket as the image of a thread brings it to another process.
func Reread(t agent.Ticket) (agent.Ticket, error) {
	data, err := putImage(agent.Checkpoint{Tickets: []agent.Ticket{t}}, nil, nil)
	if err != nil {
		return t, err
	}
	c, _, err := getImage(data)
	if err != nil {
		return t, err
	}
	return c.Tickets[0], nil
}
