package mortise

// spareViews is how many messages the room for the first call has.
const spareViews = 128

// spare is room for the first call, which after that is never used again. Where the
// host puts memory back, every call is a first one.
var spare = &struct {
	list  messageList
	views [spareViews]MessageView
}{}

// newViews returns room for the views of n messages.
func newViews(n int) (*messageList, Messages) {
	room := spare
	if n > spareViews || room == nil {
		return new(messageList), make(Messages, n)
	}
	spare = nil
	return &room.list, room.views[:n:n]
}
