package binlog

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/go-mysql-org/go-mysql/replication"
)

// event is one event of the log as it was read.
type event struct {
	*replication.BinlogEvent
	file   string
	offset int64
	// sums says that the raw bytes end with a checksum.
	sums bool
}

// walk shows each event of a chain, from the chain's position on. visit ends the walk by
// errStop.
func (r *Reader) walk(ctx context.Context, c Chain, visit func(event) error) error {
	w := &walk{reader: r, visit: visit, parser: replication.NewBinlogParser()}
	w.parser.SetVerifyChecksum(true)
	// Rows are not unpacked: the server does that.
	w.parser.SetRowsEventDecodeFunc(func(e *replication.RowsEvent, data []byte) error {
		_, err := e.DecodeHeader(data)
		return err
	})
	w.parser.SetTableMapOptionalMetaDecodeFunc(func([]byte) error { return nil })
	if len(c.Segments) == 0 {
		return nil
	}
	if c.Segments[0].Start > 0 {
		if err := w.describe(ctx, c.Head); errors.Is(err, errStop) {
			return nil
		} else if err != nil {
			return err
		}
	}
	last := Tail{c.Segments[0].File, c.Offset}
	for _, s := range c.Segments {
		from := s.Start
		if s.File == last.File { // two processes may have archived the same
			from = max(from, last.Offset)
		}
		last = Tail{s.File, s.End}
		switch err := w.segment(ctx, s, from); {
		case errors.Is(err, errStop):
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// errStop ends a walk in order.
var errStop = errors.New("the walk through the log ends here")

type walk struct {
	reader *Reader
	parser *replication.BinlogParser
	visit  func(event) error
	sums   bool
}

// describe reads the description of a file whose later events are walked through.
func (w *walk) describe(ctx context.Context, head Segment) error {
	plain, closeIt, err := w.reader.open(ctx, head)
	if err != nil {
		return err
	}
	defer closeIt()
	if _, err := io.CopyN(io.Discard, plain, int64(len(magic))); err != nil {
		return err
	}
	_, err = w.one(plain, head.Name, int64(len(magic)), w.visit)
	return err
}

func (w *walk) segment(ctx context.Context, s Segment, from int64) error {
	plain, closeIt, err := w.reader.open(ctx, s)
	if err != nil {
		return err
	}
	defer closeIt()
	at := s.Start
	if at == 0 {
		at = int64(len(magic))
	}
	if _, err := plain.Seek(at-s.Start, io.SeekStart); err != nil {
		return err
	}
	in := bufio.NewReaderSize(plain, 256<<10)
	for at < s.End {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		read := w.one
		if at < from { // a segment may begin within a transaction
			read = w.pass
		}
		size, err := read(in, s.Name, at, w.visit)
		if err != nil {
			return err
		}
		at += size
	}
	return nil
}

// pass passes over an event before the begin, unless it describes how the others are
// written.
func (w *walk) pass(in io.Reader, file string, at int64, visit func(event) error) (int64, error) {
	head := make([]byte, headerSize)
	if _, err := io.ReadFull(in, head); err != nil {
		return 0, fmt.Errorf("%w: reading %s:%d: %w", ErrDamaged, file, at, err)
	}
	h := parseHeader(head)
	if h.kind == replication.FORMAT_DESCRIPTION_EVENT {
		return w.one(io.MultiReader(bytes.NewReader(head), in), file, at, visit)
	}
	if _, err := io.CopyN(io.Discard, in, h.size-headerSize); err != nil {
		return 0, fmt.Errorf("%w: reading %s:%d: %w", ErrDamaged, file, at, err)
	}
	return max(h.size, headerSize), nil
}

// one reads an event.
func (w *walk) one(in io.Reader, file string, at int64, visit func(event) error) (size int64, err error) {
	var raw bytes.Buffer
	if _, err := io.CopyN(&raw, in, headerSize); err != nil {
		return 0, fmt.Errorf("%w: reading %s:%d: %w", ErrDamaged, file, at, err)
	}
	size = parseHeader(raw.Bytes()).size
	if size < headerSize {
		return 0, fmt.Errorf("%w: the event of %s at %d is too short", ErrDamaged, file, at)
	}
	if _, err := io.CopyN(&raw, in, size-headerSize); err != nil { // grows as it comes
		return 0, fmt.Errorf("%w: reading %s:%d: %w", ErrDamaged, file, at, err)
	}
	parsed, err := w.parser.Parse(raw.Bytes())
	if err != nil {
		return 0, fmt.Errorf("reading the event of %s at %d: %w", file, at, err)
	}
	if d, is := parsed.Event.(*replication.FormatDescriptionEvent); is {
		w.sums = d.ChecksumAlgorithm == replication.BINLOG_CHECKSUM_ALG_CRC32
	}
	e := event{BinlogEvent: parsed, file: file, offset: at, sums: w.sums}
	payload, is := parsed.Event.(*replication.TransactionPayloadEvent)
	if !is {
		return size, visit(e)
	}
	for _, inner := range payload.Events { // binlog_transaction_compression
		if err := visit(event{BinlogEvent: inner, file: file, offset: at}); err != nil {
			return size, err
		}
	}
	return size, nil
}

// resummed is an event's bytes with another body, and a checksum where sums says so.
func resummed(head, body []byte, sums bool) []byte {
	size := len(head) + len(body)
	if sums {
		size += checksumSize
	}
	b := make([]byte, 0, size)
	b = append(append(b, head...), body...)
	binary.LittleEndian.PutUint32(b[9:], uint32(size))
	if sums {
		b = binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	}
	return b
}

// parts are an event's header and its body without the checksum.
func (e event) parts() (head, body []byte) {
	head, body = e.RawData[:headerSize], e.RawData[headerSize:]
	if e.sums {
		body = body[:len(body)-checksumSize]
	}
	return head, body
}
