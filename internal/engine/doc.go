// Package engine is the contract between package host, its capabilities and the engines that run guests.
//
// # Concurrency
//
// What a Usage keeps is safe for concurrent use. An Instance, and the Guest that a host function gets, belong to one call.
//
// # Errors
//
// A Fault is a guest that broke or was stopped. ErrEngine is a fault of the engine, ErrClosed a module that was closed.
package engine
