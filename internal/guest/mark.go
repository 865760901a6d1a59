package guest

import (
	"encoding/binary"

	"github.com/mortise-dev/mortise/abi"
)

// appendMark writes what the index of an event says of a message whose encoding has that
// size, see abi.FieldMessageIndex.
func appendMark(b []byte, message *abi.Message, size int) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(size)) //nolint:gosec // no message is that long
	role := byte(0)
	switch message.Role {
	case abi.RoleSystem:
		role = abi.MarkSystem
	case abi.RoleUser:
		role = abi.MarkUser
	case abi.RoleAssistant:
		role = abi.MarkAssistant
	case abi.RoleTool:
		role = abi.MarkTool
	}
	return append(b, role, 0, 0, 0)
}
