package model

import (
	"math/big"
	"testing"
)

// The bucket itself is checked against answers worked out by hand.
func TestBucketByHand(t *testing.T) {
	const never = -1
	var b Bucket
	for i, c := range []struct {
		now, interval, capacity, cost int64
		allowed                       bool
		remaining, wait, reset        int64
	}{
		{100, 10, 3, 0, true, 3, 0, 0},              // full, and asking changes nothing
		{100, 10, 3, 4, false, 3, never, 0},         // more than it holds
		{100, 10, 3, 2, true, 1, 0, 20},             //
		{100, 10, 3, 2, false, 1, 10, 20},           //
		{105, 10, 3, 2, false, 1, 5, 15},            // half a token came back
		{110, 10, 3, 2, true, 0, 0, 30},             // equal is allowed
		{110, 20, 3, 1, true, 0, 0, 50},             // dearer tokens: 30 ns are one and a half of them
		{110, 5, 3, 0, false, 0, 35, 50},            // cheaper ones: ten are missing of three
		{110, 5, 3, 3, false, 0, 50, 50},            //
		{110, 5, 3, -2, true, 0, 0, 40},             // a refund is always taken
		{110, 10, 3, -9, true, 3, 0, 0},             // and ends at a full bucket
		{1000, 10, 3, 3, true, 0, 0, 30},            // idle time adds nothing beyond full
		{1030, 10, 5, 0, true, 5, 0, 0},             //
		{1030, 10, 1 << 40, 0, true, 1 << 40, 0, 0}, //
	} {
		got := b.Take(big.NewInt(c.now), big.NewInt(c.interval), big.NewInt(c.capacity), big.NewInt(c.cost))
		wait := int64(never)
		if got.Wait != nil {
			wait = got.Wait.Int64()
		}
		if got.Allowed != c.allowed || got.Remaining.Int64() != c.remaining || wait != c.wait || got.Reset.Int64() != c.reset {
			t.Errorf("call %d: allowed %v remaining %v wait %v reset %v, want %+v", i, got.Allowed, got.Remaining, wait, got.Reset, c)
		}
	}
}
