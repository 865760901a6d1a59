package guest

import (
	"encoding/binary"

	"github.com/mortise-dev/mortise/abi"
)

// mark is what the index of an event says of a message, see abi.FieldMessageIndex.
type mark [abi.MessageMarkSize]byte

func markOf(message *abi.Message, size int) (k mark) {
	binary.LittleEndian.PutUint32(k[:], uint32(size)) //nolint:gosec // no message is that long
	switch message.Role {
	case abi.RoleSystem:
		k[4] = abi.MarkSystem
	case abi.RoleUser:
		k[4] = abi.MarkUser
	case abi.RoleAssistant:
		k[4] = abi.MarkAssistant
	case abi.RoleTool:
		k[4] = abi.MarkTool
	}
	return k
}
