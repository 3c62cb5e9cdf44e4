package lab

import (
	"container/heap"
	"io"
	"sync"
	"time"
)

// delayLine writes frames when their time has come. Frames overtake each other if
// their times say so.
type delayLine struct {
	in   chan parcel
	end  chan struct{}
	once sync.Once
}

type parcel struct {
	at    time.Time
	to    io.Writer
	frame []byte
}

func newDelayLine() *delayLine {
	return &delayLine{in: make(chan parcel, 1024), end: make(chan struct{})}
}

func (d *delayLine) add(at time.Time, to io.Writer, frame []byte) {
	select {
	case d.in <- parcel{at, to, frame}:
	case <-d.end:
	}
}

func (d *delayLine) stop() { d.once.Do(func() { close(d.end) }) }

// run writes frames until stop.
func (d *delayLine) run() {
	var waiting parcels
	due := time.NewTimer(time.Hour)
	for {
		select {
		case <-d.end:
			return
		case p := <-d.in:
			heap.Push(&waiting, p)
		case <-due.C:
		}
		for len(waiting) > 0 && time.Until(waiting[0].at) <= 0 {
			p := heap.Pop(&waiting).(parcel)
			p.to.Write(p.frame)
		}
		if len(waiting) > 0 {
			due.Reset(time.Until(waiting[0].at))
		}
	}
}

// parcels is a heap.
type parcels []parcel

func (p parcels) Len() int           { return len(p) }
func (p parcels) Less(i, j int) bool { return p[i].at.Before(p[j].at) }
func (p parcels) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *parcels) Push(x any)        { *p = append(*p, x.(parcel)) }
func (p *parcels) Pop() any {
	old := *p
	last := old[len(old)-1]
	*p = old[:len(old)-1]
	return last
}
