package jpegplane

// window is a reader over a scan, of which it keeps a part at a time: stuffing
// is taken out of the next bytes when they come in.
type window struct {
	reader
	data []byte // stuffed, not in the window yet
	size int    // bytes in the window
	base int    // place of buf[0] in the scan without stuffing
	// starts are the places where restart intervals begin, as far as the
	// window came; the first begins at 0.
	starts []int
	ended  bool // data is used up, or a marker ends the scan
}

const (
	windowSize = 64 << 10
	// behind is kept of what was read: the bits in acc, and a restart that the
	// reader looked past.
	behind = 32
	// maxStarts bounds what a file of nothing but restart markers costs; it is
	// as many as 100 megapixels have with one block each.
	maxStarts = 2 << 20
)

func newWindow(data []byte) *window {
	w := &window{data: data, starts: []int{0}}
	w.buf = make([]byte, windowSize+padding)
	w.fill()
	return w
}

// ready makes sure that one MCU's bytes are there, or all that are left.
func (w *window) ready() {
	if w.pos+padding > w.size && !w.ended {
		w.fill()
	}
}

// overrun says whether more was read than the scan has.
func (w *window) overrun() bool { return w.ended && w.used() > w.size }

func (w *window) fill() {
	if from := w.pos - behind; from > 0 {
		copy(w.buf, w.buf[from:w.size])
		w.pos, w.size, w.base = behind, w.size-from, w.base+from
	}
	for w.size < windowSize && !w.ended {
		w.more()
	}
	clear(w.buf[w.size:])
}

// more takes bytes up to the next 0xff and what that one means.
func (w *window) more() {
	i := min(indexFF(w.data), windowSize-w.size)
	w.size += copy(w.buf[w.size:], w.data[:i])
	if w.data = w.data[i:]; w.size == windowSize {
		return
	}
	if len(w.data) < 2 {
		w.ended = true
		return
	}
	switch marker := w.data[1]; {
	case marker == 0:
		w.buf[w.size] = 0xff
		w.size++
		w.data = w.data[2:]
	case marker == 0xff: // fill byte
		w.data = w.data[1:]
	case marker >= 0xd0 && marker <= 0xd7 && len(w.starts) < maxStarts:
		w.starts = append(w.starts, w.base+w.size)
		w.data = w.data[2:]
	default:
		w.ended = true
	}
}

// restart moves to the restart interval with a number; false where it is not,
// or not near.
func (w *window) restart(number int) bool {
	if number >= len(w.starts) {
		return false
	}
	at := w.starts[number] - w.base
	if at < 0 || at > w.size {
		return false
	}
	w.seek(at)
	return true
}
