package main

import (
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// conns are connections of gRPC.
type conns struct{ all []*grpc.ClientConn }

// dialAll deals out connections to the addresses in turn.
func dialAll(addrs []string, n int) (*conns, error) {
	c := &conns{}
	for i := range n {
		cc, err := grpc.NewClient(addrs[i%len(addrs)], grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, errors.Join(err, c.close())
		}
		c.all = append(c.all, cc)
	}
	return c, nil
}

func (c *conns) close() error {
	var errs []error
	for _, cc := range c.all {
		errs = append(errs, cc.Close())
	}
	return errors.Join(errs...)
}
