// Package workload asks a cluster as its users do, and writes down what it was
// told: through any node, hot, warm and cold keys, charges of all weights, peeks,
// refunds and resets, singly and in pipelines.
//
// Each worker has one connection and, in a pipeline, several operations open, each
// as a process of its own. An operation is found again in the nodes' traces by its
// tag. Its completion is ok (answered), fail (certainly not charged) or info (perhaps
// charged); after an info the connection is dropped and the process replaced.
//
// What is asked is a function of the seed; when, and what is answered, is not.
package workload
