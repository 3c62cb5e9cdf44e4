package model

import "math/big"

// Windows says in which window a date lies, by its end, which the next one begins with.
type Windows interface {
	End(date *big.Int) *big.Int
}

// Fixed is a fixed window counter: a list of all that was ever admitted, each in the
// window that it was admitted in. The zero value is empty.
type Fixed struct {
	all events   // at: the end of the window
	end *big.Int // of the newest window that there was an effect in; nil: none yet
}

// Take asks for cost units at date, for at most limit in a window. Dates may go back:
// then the newest window that there was anything in goes on until its end is reached.
// A cost of 0 asks whether not more than limit are used; a negative cost takes them
// back; when nothing is used any more, it is as if nothing ever was.
func (f *Fixed) Take(date *big.Int, windows Windows, limit, cost *big.Int) Answer {
	end := f.end
	if end == nil || end.Cmp(date) <= 0 {
		end = windows.End(date)
	}
	this := func(at *big.Int) bool { return at.Cmp(end) == 0 }
	a := Answer{Wait: new(big.Int), Reset: new(big.Int), Delay: new(big.Int)}
	used := f.all.sum(this)
	switch {
	case cost.Sign() < 0:
		a.Allowed = true
		f.all.giveBack(new(big.Int).Neg(cost), this)
		if f.end = end; f.all.sum(this).Sign() == 0 {
			f.all, f.end = nil, nil
		}
	case cost.Cmp(limit) > 0:
		a.Wait = nil
	case add(used, cost).Cmp(limit) > 0:
		a.Wait = sub(end, date)
	default:
		a.Allowed = true
		if cost.Sign() > 0 {
			f.all, f.end = append(f.all, event{end, cost}), end
		}
	}
	used = f.all.sum(this)
	a.Remaining = atLeast0(limit, used)
	if used.Sign() > 0 {
		a.Reset = sub(end, date)
	}
	return a
}

// Every are windows of a length in ns, counted from 1970.
type Every struct{ Length *big.Int }

func (e Every) End(date *big.Int) *big.Int {
	return new(big.Int).Mul(add(index(date, e.Length), big.NewInt(1)), e.Length)
}
