package binlog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	binlog "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/go-sql-driver/mysql"
)

const (
	headerSize   = 19
	checksumSize = 4
	// magic begins each file.
	magic = "\xfebin"
	// notBlocking makes the server end the stream at the end of its log.
	notBlocking = 1
	// leastReplica keeps away from the numbers of real replicas: two of one number end each
	// other.
	leastReplica = 1 << 20
	// silence is how long the server may take for the next bytes.
	silence = time.Minute
	// maxSpecial bounds the events that are looked into: rotations and descriptions.
	maxSpecial = 64 << 10
)

// header is what each event begins with.
type header struct {
	time  int64
	kind  replication.EventType
	size  int64
	ends  int64 // in the file, its lower 32 bits; 0 where the server leaves it out
	flags uint16
}

func parseHeader(b []byte) header {
	u := binary.LittleEndian
	return header{int64(u.Uint32(b)), replication.EventType(b[4]), int64(u.Uint32(b[9:])), int64(u.Uint32(b[13:])),
		u.Uint16(b[17:])}
}

// sink takes the events that a server sends.
type sink interface {
	// file begins a file. created is the time of its first event, and after the length of the
	// file before it, 0 where that was not read.
	file(name string, created, after int64) error
	// event begins an event at an offset. The bytes of it follow by Write.
	event(h header, offset int64) error
	io.Writer
	// ended says that the event is whole.
	ended() error
}

// fetch sends the events of the server's log, from a file and an offset in it to the end
// that the log has now.
func fetch(ctx context.Context, dsn string, s *Server, name string, offset int64, to sink) error {
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		return errors.New("the DSN of the binary log cannot be read") // its error may repeat the password
	}
	network, addr := address(c)
	dialer := net.Dialer{Timeout: silence}
	conn, err := client.ConnectWithDialer(ctx, network, addr, c.User, c.Passwd, "", dialer.DialContext,
		func(o *client.Conn) error {
			o.ReadTimeout, o.WriteTimeout = silence, silence
			if c.TLS != nil {
				o.SetTLSConfig(c.TLS)
			}
			return nil
		})
	if err != nil {
		return s.refused(err)
	}
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		_ = conn.Conn.Conn.Close() // ends a read; the rest of the connection is the reader's alone
	})
	defer func() {
		if !stop() {
			<-closed
		}
		_ = conn.Close() // ended
	}()
	f := &stream{server: s, conn: conn, to: to, name: name, offset: max(offset, int64(len(magic)))}
	if err := f.run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	return nil
}

// refused explains an error of go-mysql.
func (s *Server) refused(err error) error {
	var e *binlog.MyError
	if errors.As(err, &e) {
		return s.denied(e.Code, err)
	}
	return fmt.Errorf("reading the binary log: %w", err)
}

// stream is one answer of the server.
type stream struct {
	server *Server
	conn   *client.Conn
	to     sink

	name   string // of the file
	offset int64  // of the next event
	begun  bool   // the file was announced to the sink
	after  int64  // the length of the file before
	sums   bool   // events end with a checksum
	packet packet
}

func (f *stream) run() error {
	settings := []string{"SET @master_binlog_checksum = @@global.binlog_checksum"}
	if f.server.MariaDB { // everything as it is in the file
		settings = append(settings, "SET @mariadb_slave_capability = 4")
	} else {
		settings = append(settings, "SET @source_binlog_checksum = @@global.binlog_checksum")
	}
	for _, statement := range settings {
		if _, err := f.conn.Execute(statement); err != nil {
			return f.server.refused(err)
		}
	}
	if err := f.ask(); err != nil {
		return err
	}
	for {
		f.packet = packet{stream: f}
		if err := f.conn.ReadPacketTo(&f.packet); err != nil {
			return fmt.Errorf("reading the binary log: %w", err)
		}
		if ended, err := f.packet.close(); ended || err != nil {
			return err
		}
	}
}

// ask sends COM_BINLOG_DUMP.
func (f *stream) ask() error {
	f.conn.ResetSequence()
	b := make([]byte, 4, 4+11+len(f.name))
	b = append(b, binlog.COM_BINLOG_DUMP)
	b = binary.LittleEndian.AppendUint32(b, uint32(f.offset))
	b = binary.LittleEndian.AppendUint16(b, notBlocking|replication.BINLOG_SEND_ANNOTATE_ROWS_EVENT)
	b = binary.LittleEndian.AppendUint32(b, leastReplica+rand.Uint32N(1<<31))
	if err := f.conn.WritePacket(append(b, f.name...)); err != nil {
		return fmt.Errorf("asking for the binary log: %w", err)
	}
	return nil
}

// packet takes the bytes of one packet as they come.
type packet struct {
	*stream
	head    []byte // the status and the header of the event, or all of a packet that is looked into
	whole   bool   // head gets all of it
	skipped bool
	got     int64 // bytes of the event
	header  header
	last    []byte // the last bytes, which may be the checksum
	sum     uint32
}

// Write implements io.Writer.
func (p *packet) Write(b []byte) (int, error) {
	n := len(b)
	if need := 1 + headerSize - len(p.head); need > 0 {
		take := min(need, len(b))
		p.head, b = append(p.head, b[:take]...), b[take:]
		if len(p.head) <= headerSize || p.head[0] != 0 {
			p.head = append(p.head, b[:min(len(b), maxSpecial)]...)
			return n, nil
		}
		if err := p.begin(); err != nil {
			return 0, err
		}
	}
	switch {
	case p.head[0] != 0 || p.whole:
		if len(p.head)+len(b) > maxSpecial {
			return 0, fmt.Errorf("an event of the binary log at %s:%d is larger than it can be", p.name, p.offset)
		}
		p.head = append(p.head, b...)
	case !p.skipped:
		return n, p.pass(b)
	}
	return n, nil
}

// begin judges an event by its header.
func (p *packet) begin() error {
	p.header = parseHeader(p.head[1:])
	switch h := p.header; {
	case h.kind == replication.HEARTBEAT_EVENT || h.kind == replication.HEARTBEAT_LOG_EVENT_V2:
		p.skipped = true
	case h.kind == replication.ROTATE_EVENT && h.time == 0, h.kind == replication.FORMAT_DESCRIPTION_EVENT:
		p.whole = true
	default:
		return p.deliver(p.head[1:])
	}
	return nil
}

// deliver begins an event of the file.
func (p *packet) deliver(bytes []byte) error {
	if !p.begun {
		return fmt.Errorf("the server sends events of %s without their description", p.name)
	}
	if end := p.offset + p.header.size; p.header.ends != 0 && p.header.ends != end&0xffffffff {
		return fmt.Errorf("events are missing in what the server sends of %s: one that ends at %d was expected to "+
			"end at %d", p.name, p.header.ends, end)
	}
	if err := p.to.event(p.header, p.offset); err != nil {
		return err
	}
	return p.pass(bytes)
}

// pass hands bytes of an event on and sums them up.
func (p *packet) pass(b []byte) error {
	p.got += int64(len(b))
	p.last = append(p.last, b...)
	if sure := len(p.last) - checksumSize; sure > 0 {
		p.sum = crc32.Update(p.sum, crc32.IEEETable, p.last[:sure])
		p.last = append(p.last[:0], p.last[sure:]...)
	}
	_, err := p.to.Write(b)
	return err
}

// The first byte of a packet that is no event.
const (
	errorPacket = 0xff
	endPacket   = 0xfe
)

// close ends the packet; ended says that the log ends here.
func (p *packet) close() (ended bool, err error) {
	switch {
	case len(p.head) == 0:
		return false, errors.New("the server sent an empty packet")
	case p.head[0] == endPacket:
		return true, nil
	case p.head[0] == errorPacket:
		return false, p.server.packetError(p.head)
	case len(p.head) <= headerSize:
		return false, errors.New("the server sent half an event")
	case p.skipped:
		return false, nil
	case p.whole:
		return false, p.special()
	}
	return false, p.end()
}

// special handles what says which file and which kind of events follow.
func (p *packet) special() error {
	if p.header.kind == replication.ROTATE_EVENT {
		return p.rotate()
	}
	if written, err := p.describe(); !written || err != nil {
		return err
	}
	if err := p.deliver(p.head[1:]); err != nil {
		return err
	}
	return p.end()
}

// end checks that an event of the file is whole.
func (p *packet) end() error {
	if p.got != p.header.size {
		return fmt.Errorf("an event of %s at %d has %d of its %d bytes", p.name, p.offset, p.got, p.header.size)
	}
	if p.sums && len(p.last) == checksumSize && binary.LittleEndian.Uint32(p.last) != p.sum {
		return fmt.Errorf("the checksum of the event of %s at %d is wrong", p.name, p.offset)
	}
	p.stream.offset += p.header.size
	return p.to.ended()
}

// rotate reads which file the next events are of. The server says so at the begin, too.
func (p *packet) rotate() error {
	body := p.head[1+headerSize:]
	if p.sums && len(body) > checksumSize {
		body = body[:len(body)-checksumSize]
	}
	if len(body) <= 8 {
		return errors.New("the server sent a rotation without a name")
	}
	f := p.stream
	name := string(body[8:])
	if name == f.name || !f.begun && len(name) == len(f.name)+checksumSize && name[:len(f.name)] == f.name {
		return nil // at the begin whether there is a checksum is not known yet
	}
	f.after = 0
	if f.begun {
		f.after = f.offset
	}
	f.name, f.offset, f.begun = name, int64(len(magic)), false
	return nil
}

// describe reads the description that each file begins with. It is sent first from
// within a file too: then it is not written there.
func (p *packet) describe() (written bool, err error) {
	f, body := p.stream, p.head[1+headerSize:]
	if len(body) < 2+50+4+1+checksumSize+1 {
		return false, errors.New("the server sent a description that is too short")
	}
	f.sums = body[len(body)-checksumSize-1] == replication.BINLOG_CHECKSUM_ALG_CRC32
	if f.begun {
		return false, errors.New("the server describes a file twice")
	}
	f.begun = true
	return f.offset == int64(len(magic)), f.to.file(f.name, p.header.time, f.after)
}

// PurgedError says that the server no longer has what was asked for.
type PurgedError struct{ Text string }

func (e *PurgedError) Error() string {
	return "the server no longer has that part of its binary log: " + e.Text
}

// noSuchLog is the server's code for a file or an offset that it does not have.
const noSuchLog = 1236

func (s *Server) packetError(b []byte) error {
	if len(b) < 3 {
		return errors.New("the server refused without a reason")
	}
	code, text := binary.LittleEndian.Uint16(b[1:]), string(b[3:])
	if len(text) > 6 && text[0] == '#' {
		text = text[6:]
	}
	if code == noSuchLog {
		return &PurgedError{text}
	}
	return s.denied(code, fmt.Errorf("error %d: %.300s", code, text))
}
