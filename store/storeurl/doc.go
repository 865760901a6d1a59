// Package storeurl opens a store by its name: the path of a SQLite file, or the URL of a PostgreSQL database or of NATS servers.
//
//	data/mortise.db
//	postgres://USER@HOST/DATABASE?sslmode=verify-full&schema=NAME
//	nats://HOST:4222,HOST:4222/STREAM?replicas=3
//
// The package imports all engines. A program that knows its engine imports that one alone.
//
// # Concurrency
//
// A [Store] is safe for concurrent use, and several processes may open one name.
//
// # Errors
//
// They have no credentials. With Options.Existing, a store that does not exist is an fs.ErrNotExist.
package storeurl
