package main

// maxAdmissions is how many admissions a windowMax tells apart: 16 MB of them.
const maxAdmissions = 1 << 20

type admission struct{ at, units int64 }

// windowMax finds the most units admitted in any (t-length, t]. It holds the
// admissions of the last window only. If these are too many, it puts neighbours
// together, as if the earlier one had come with the later one: no window holds less
// by that, so the result is an upper bound then.
type windowMax struct {
	length int64
	held   []admission // of the window that ends with the last one, oldest first
	sum    int64       // their units
	gone   int         // of held, those in front that are in the window no more
	most   int64
	until  traceCall // the last call of the window with the most
	coarse bool      // most is an upper bound
}

// add counts an admission that is not earlier than the ones before.
func (w *windowMax) add(c traceCall, units int64) {
	for w.gone < len(w.held) && w.held[w.gone].at <= c.at-w.length {
		w.sum -= w.held[w.gone].units
		w.gone++
	}
	w.sum += units
	if last := len(w.held) - 1; last >= w.gone && w.held[last].at == c.at {
		w.held[last].units += units
	} else {
		w.makeRoom()
		w.held = append(w.held, admission{c.at, units})
	}
	if w.sum > w.most {
		w.most, w.until = w.sum, c
	}
}

// makeRoom sees to it that held grows no further than it must.
func (w *windowMax) makeRoom() {
	if w.gone > len(w.held)/2 {
		w.held = w.held[:copy(w.held, w.held[w.gone:])]
		w.gone = 0
	}
	if len(w.held) < maxAdmissions {
		return
	}
	kept := w.held[:0]
	for live := w.held[w.gone:]; len(live) > 0; {
		a := live[0]
		if len(live) > 1 {
			a = admission{live[1].at, a.units + live[1].units}
		}
		live = live[min(2, len(live)):]
		kept = append(kept, a)
		w.coarse = true
	}
	w.held, w.gone = kept, 0
}
