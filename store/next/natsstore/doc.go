// Package natsstore keeps threads in NATS JetStream, for several machines that share a cluster. It needs nats-server 2.12 or later.
package natsstore
