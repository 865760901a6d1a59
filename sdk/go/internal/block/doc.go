// Package block copies text into a memory block of the host, for the imports
// that take one.
package block
