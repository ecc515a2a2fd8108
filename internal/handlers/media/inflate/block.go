package inflate

import (
	"encoding/binary"
	"errors"
)

// fixed makes the tables of a block with the fixed codes (RFC 1951, 3.2.6).
func (r *Reader) fixed() {
	lengths := r.lengths[:288+32]
	for i := range lengths {
		switch {
		case i < 144, i >= 280 && i < 288:
			lengths[i] = 8
		case i < 256:
			lengths[i] = 9
		case i < 280:
			lengths[i] = 7
		default:
			lengths[i] = 5
		}
	}
	build(r.literals[:], literalBits, lengths[:288], literalMeanings[:])
	build(r.distances[:], distanceBits, lengths[288:], distanceMeanings[:])
}

// The order in which the lengths of the code of lengths come (3.2.7).
var order = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// dynamic reads the codes of a block and makes its tables.
func (r *Reader) dynamic() error {
	head, err := r.bits(14)
	if err != nil {
		return err
	}
	literals, distances, n := int(head&31)+257, int(head>>5&31)+1, int(head>>10)+4
	if literals > 286 || distances > 30 {
		return ErrCorrupt
	}
	var lengths [19]uint8
	for _, symbol := range order[:n] {
		v, err := r.bits(3)
		if err != nil {
			return err
		}
		lengths[symbol] = uint8(v)
	}
	if err := r.readLengths(lengths[:], literals+distances); err != nil {
		return err
	}
	if !build(r.literals[:], literalBits, r.lengths[:literals], literalMeanings[:]) ||
		!build(r.distances[:], distanceBits, r.lengths[literals:][:distances], distanceMeanings[:]) {
		return ErrCorrupt
	}
	return nil
}

// readLengths reads n lengths of codes, which are themselves in a code.
func (r *Reader) readLengths(code []uint8, n int) error {
	const width = 7
	var table [1 << width]entry
	var meanings [19]entry
	for i := range meanings {
		meanings[i] = newEntry(literal, i, 1)
	}
	if !build(table[:], width, code, meanings[:]) {
		return ErrCorrupt
	}
	for i := 0; i < n; {
		if _, err := r.bits(0); err != nil {
			return err
		}
		e := table[r.word&(1<<width-1)]
		if e == 0 {
			return ErrCorrupt
		}
		r.word >>= e.drop()
		r.count -= e.drop()
		symbol := e.value()
		if symbol < 16 {
			r.lengths[i] = uint8(symbol)
			i++
			continue
		}
		again, err := r.repeat(symbol, i)
		if err != nil {
			return err
		}
		if i+again > n {
			return ErrCorrupt
		}
		of := uint8(0)
		if symbol == 16 {
			of = r.lengths[i-1]
		}
		for range again {
			r.lengths[i] = of
			i++
		}
	}
	return nil
}

// repeat reads how often a length, or zero, comes again.
func (r *Reader) repeat(symbol, done int) (int, error) {
	base, extra := 3, uint(2)
	switch symbol {
	case 16:
		if done == 0 {
			return 0, ErrCorrupt
		}
	case 17:
		extra = 3
	case 18:
		base, extra = 11, 7
	}
	v, err := r.bits(extra)
	return base + int(v), err
}

// symbols decodes a block of codes until it ends, out is full or more input is
// needed.
//
// The state is kept in variables so that it stays in registers, and places are
// masked so that they need no check. A refill leaves 56 bits: enough for five looks
// at the first table, or for a length and a distance, which take 48 at most.
func (r *Reader) symbols() error {
	if err := r.ready(); err != nil {
		return err
	}
	in, out, reach := &r.in, &r.out, r.reach()
	s := state{r.word, r.count, r.pos, r.made}
	var err error
	for s.pos <= reach && s.made < full && err == nil {
		s.refill(in)
		e := r.literals[s.word%(1<<literalBits)]
		for range 4 {
			if e&literal == 0 {
				break
			}
			put16(out, s.made, uint16(e>>16))
			s.made += int(e >> 8 & 3)
			s.word >>= e & 63
			s.count -= uint(e & 63)
			e = r.literals[s.word%(1<<literalBits)]
		}
		if e&literal != 0 {
			continue
		}
		s.refill(in)
		d := r.distances[s.word>>((uint(e&63)+e.extra())&63)%(1<<distanceBits)]
		if e&(elsewhere|end) != 0 || e.value() == 0 || d&elsewhere != 0 || d.value() == 0 {
			if s, err = r.other(s, e); errors.Is(err, errEnd) {
				r.inBlock, err = false, nil
				break
			}
			continue
		}
		s.word >>= e & 63
		length := e.value() + int(s.word&(1<<(e.extra()&63)-1))
		s.word >>= e.extra() & 63
		s.word >>= d & 63
		distance := d.value() + int(s.word&(1<<(d.extra()&63)-1))
		s.word >>= d.extra() & 63
		s.count -= uint(e&63+d&63) + e.extra() + d.extra()
		if distance > s.made {
			err = ErrCorrupt
			break
		}
		copyMatch(out, s.made, distance, length)
		s.made += length
	}
	r.word, r.count, r.pos, r.made = s.word, s.count, s.pos, s.made
	return err
}

// state is that of the stream in registers.
type state struct {
	word      uint64
	count     uint
	pos, made int
}

func (s *state) refill(in *[inSize + margin]byte) {
	at := s.pos & (inSize - 1)
	s.word |= binary.LittleEndian.Uint64(in[at:at+8]) << (s.count & 63)
	s.pos += int(63-s.count) >> 3
	s.count |= 56
}

func put16(out *[outSize + margin]byte, at int, v uint16) {
	at &= outSize - 1
	binary.LittleEndian.PutUint16(out[at:at+2], v)
}

var errEnd = errors.New("inflate: the block ends")

// other goes on where e is not a literal of a short code.
func (r *Reader) other(s state, e entry) (state, error) {
	s.refill(&r.in)
	e = s.meaning(e, r.literals[:])
	if e&literal != 0 {
		r.out[s.made] = byte(e.value())
		s.made++
		return s, nil
	}
	if e&end != 0 {
		return s, errEnd
	}
	length := s.number(e)
	e = s.meaning(r.distances[s.word%(1<<distanceBits)], r.distances[:])
	distance := s.number(e)
	if length == 0 || e.value() == 0 || distance > s.made {
		return s, ErrCorrupt
	}
	copyMatch(&r.out, s.made, distance, length)
	s.made += length
	return s, nil
}

// meaning takes a code, in the second table where e says so.
func (s *state) meaning(e entry, table []entry) entry {
	s.word >>= e & 63
	s.count -= uint(e & 63)
	if e&elsewhere != 0 {
		e = table[e.value()+int(s.word&(1<<e.extra()-1))]
		s.word >>= e & 63
		s.count -= uint(e & 63)
	}
	return e
}

// number takes the extra bits of a length or distance.
func (s *state) number(e entry) int {
	v := e.value() + int(s.word&(1<<e.extra()-1))
	s.word >>= e.extra()
	s.count -= e.extra()
	return v
}

// copyMatch copies length bytes from distance before at. It may write up to 15
// bytes more.
func copyMatch(out *[outSize + margin]byte, at, distance, length int) {
	from := (at - distance) & (outSize - 1)
	at &= outSize - 1
	if distance < 8 {
		for i := range length {
			out[at+i] = out[from+i]
		}
		return
	}
	copy8(out, at, from)
	copy8(out, at+8, from+8)
	for i := 16; i < length; i += 8 {
		copy8(out, at+i, from+i)
	}
}

func copy8(out *[outSize + margin]byte, at, from int) {
	binary.LittleEndian.PutUint64(out[at:at+8], binary.LittleEndian.Uint64(out[from:from+8]))
}
