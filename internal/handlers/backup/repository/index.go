package repository

import "sync"

// maxIndex bounds how many pieces are known by their content: 20 MB. What is not
// known is stored once more.
const maxIndex = 250_000

// index finds pieces by the sums of their contents, so that a file that was moved or
// copied is not stored again.
type index struct {
	lock    sync.Mutex
	places  map[Sum]place
	objects []string
	numbers map[string]uint32
}

// place is a Piece in 20 bytes.
type place struct {
	object, offset, stored, length uint32
	packed                         bool
}

func newIndex() *index { return &index{places: map[Sum]place{}, numbers: map[string]uint32{}} }

func (x *index) add(p Piece) {
	x.lock.Lock()
	defer x.lock.Unlock()
	if _, known := x.places[p.Sum]; known || len(x.places) >= maxIndex {
		return
	}
	n, known := x.numbers[p.Object]
	if !known {
		n = uint32(len(x.objects))
		x.objects, x.numbers[p.Object] = append(x.objects, p.Object), n
	}
	x.places[p.Sum] = place{n, uint32(p.Offset), uint32(p.Stored), uint32(p.Length), p.Packed}
}

func (x *index) find(sum Sum) (Piece, bool) {
	x.lock.Lock()
	defer x.lock.Unlock()
	p, known := x.places[sum]
	if !known {
		return Piece{}, false
	}
	return Piece{
		Object: x.objects[p.object], Offset: int64(p.offset), Stored: int64(p.stored), Packed: p.packed,
		Length: int64(p.length), Sum: sum,
	}, true
}
