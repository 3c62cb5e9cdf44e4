// Package workload asks a cluster as its users do, and writes down what it was
// told: through any node, hot, warm and cold keys, charges of all weights, peeks,
// refunds and resets, singly and in pipelines.
//
// What is asked is a table ([Operations]) over keys of several classes ([classes]),
// drawn from the seed: what a worker asks does not depend on what it is answered, nor
// on the other workers. When it asks does. Only the workers that wait as long as a
// denial says are led by what they are told.
//
// The other half of it is under limit expressions ([Limited]), of all algorithms, one or
// several at a time. A call that has an ID and no answer is repeated under it at another
// node.
//
// A worker has one connection, to a node of its own, to any, or to the leader, and
// does not wait for others: it asks when its time has come, and what it could not
// send in time it does not make up for. In a pipeline it has several operations
// open, each as a process of its own.
//
// An operation is found again in the nodes' traces by its tag. Its completion is ok
// (answered), fail (certainly not charged) or info (perhaps charged); after an info
// the connection is dropped and the process replaced.
//
// At the end, when all is healed, [Workload.Drain] has every node decide on every
// kind of key, reads every key through every node, and waits until the nodes' states
// are the same.
package workload
