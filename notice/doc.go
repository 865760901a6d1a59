// Package notice words the news of background tasks for a model.
//
// One task's news is an [abi.Notice]. [FollowUp], [Reminder] and [Events] make one
// text of many, in three wordings; each has a budget and says how many notices the
// text covers, so that the rest can wait. [EventText] is the wording of one.
//
// What tasks say is foreign text: it is escaped and cut, so that it can neither
// close a tag nor pose as the news of another task. This is the one place where
// that is done, whoever carries the news.
//
// # Concurrency
//
// The package has functions without state; they are safe for concurrent use.
//
// # Errors
//
// There are none: a value that cannot be written is replaced by words that say so.
package notice
