package inflate

import (
	"encoding/binary"
	"errors"
	"io"
)

// ErrCorrupt says that a stream is not DEFLATE. One that ends early is
// io.ErrUnexpectedEOF.
var ErrCorrupt = errors.New("inflate: the stream is damaged")

const (
	history = 1 << 15 // how far back a match may lie
	outSize = 4 << 15
	full    = outSize - 512 // the output is given out: one more round might not fit
	inSize  = 1 << 15
	most    = inSize - 64 // bytes of input at a time, zeros behind them
	margin  = 512         // what a round may read or write too far
)

// Reader reads a stream.
type Reader struct {
	source io.Reader
	// in[pos:have] was not looked at; word holds the count bits before it, and
	// above them zeros or the bits that follow.
	in        [inSize + margin]byte
	pos, have int
	ended     bool // source has no more; zeros follow
	word      uint64
	count     uint

	// out[given:made] is to be read, what lies before it to be copied from.
	out         [outSize + margin]byte
	given, made int
	err         error

	last    bool // this block is the last one
	inBlock bool // of Huffman codes
	stored  int  // bytes left of a stored block

	literals  [literalSpace]entry
	distances [distanceSpace]entry
	lengths   [288 + 32]uint8
}

// New reads the stream that source begins with. It may read more from it.
func New(source io.Reader) *Reader {
	return &Reader{source: source}
}

// Read implements io.Reader.
func (r *Reader) Read(to []byte) (int, error) {
	for r.given == r.made {
		if len(to) == 0 {
			return 0, nil
		}
		if r.err != nil {
			return 0, r.err
		}
		r.err = r.decode()
	}
	n := copy(to, r.out[r.given:r.made])
	r.given += n
	return n, nil
}

// decode makes more output, which may be none. What was made of zeros behind the
// end of the stream is not given out.
func (r *Reader) decode() error {
	r.slide()
	before := r.made
	err := r.blocks()
	if r.beyond() {
		r.made = before
		return io.ErrUnexpectedEOF
	}
	return err
}

// beyond says whether more bits were used than there are.
func (r *Reader) beyond() bool { return r.ended && r.pos-int(r.count/8) > r.have }

// slide makes space in out; all of it was given.
func (r *Reader) slide() {
	if r.made >= full {
		n := copy(r.out[:], r.out[r.made-history:r.made])
		r.given, r.made = n, n
	}
}

// blocks decodes until out is full or the stream ends: io.EOF.
func (r *Reader) blocks() error {
	for r.made < full && !r.beyond() {
		var err error
		switch {
		case r.stored > 0:
			err = r.copyStored()
		case r.inBlock:
			err = r.symbols()
		case r.last:
			return io.EOF
		default:
			err = r.block()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// block begins a block.
func (r *Reader) block() error {
	head, err := r.bits(3)
	if err != nil {
		return err
	}
	r.last = head&1 == 1
	switch head >> 1 {
	case 0:
		return r.openStored()
	case 1:
		r.fixed()
	case 2:
		if err := r.dynamic(); err != nil {
			return err
		}
	default:
		return ErrCorrupt
	}
	pair(r.literals[:1<<literalBits])
	r.inBlock = true
	return nil
}

func (r *Reader) openStored() error {
	if _, err := r.bits(r.count & 7); err != nil {
		return err
	}
	sizes, err := r.bits(32)
	if err != nil {
		return err
	}
	if uint16(sizes) != ^uint16(sizes>>16) {
		return ErrCorrupt
	}
	r.stored = int(uint16(sizes))
	return nil
}

func (r *Reader) copyStored() error {
	r.unread()
	if r.pos == r.have {
		if err := r.fill(); err != nil {
			return err
		}
		if r.pos == r.have {
			return io.ErrUnexpectedEOF
		}
	}
	n := copy(r.out[r.made:full], r.in[r.pos:min(r.pos+r.stored, r.have)])
	r.pos, r.made, r.stored = r.pos+n, r.made+n, r.stored-n
	return nil
}

// unread puts whole bytes of word back.
func (r *Reader) unread() {
	r.pos -= int(r.count >> 3)
	r.count &= 7
	r.word &= 1<<r.count - 1
}

// fill reads more input behind what is left of it, and zeros behind the end.
func (r *Reader) fill() error {
	r.unread()
	r.have = copy(r.in[:], r.in[min(r.pos, r.have):r.have])
	r.pos = 0
	for r.have < most && !r.ended {
		n, err := r.source.Read(r.in[r.have:most])
		r.have += n
		if errors.Is(err, io.EOF) {
			r.ended = true
		} else if err != nil {
			return err
		}
	}
	clear(r.in[r.have:])
	return nil
}

// ready makes sure that two refills find what they need.
func (r *Reader) ready() error {
	if !r.ended && r.pos > r.have-16 {
		return r.fill()
	}
	return nil
}

// reach is up to where symbols may look without asking for more: what two refills
// read lies in the input, or in the zeros behind its end.
func (r *Reader) reach() int {
	if r.ended {
		return r.have + 16
	}
	return r.have - 16
}

// bits takes n bits, 32 at most.
func (r *Reader) bits(n uint) (uint32, error) {
	if err := r.ready(); err != nil {
		return 0, err
	}
	if r.pos > r.reach() {
		return 0, io.ErrUnexpectedEOF
	}
	r.word |= binary.LittleEndian.Uint64(r.in[r.pos:]) << (r.count & 63)
	r.pos += int(63-r.count) >> 3
	r.count |= 56
	v := uint32(r.word & (1<<n - 1))
	r.word >>= n
	r.count -= n
	return v, nil
}
