package storage

import (
	"context"
	"crypto/ed25519"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// SFTPOptions name a folder of another host and how to sign in there.
type SFTPOptions struct {
	Host string
	Port int // 22 when 0
	User string
	// Password or KeyFile: a private key in PEM as ssh-keygen writes it, without a
	// passphrase.
	Password, KeyFile string
	// HostKey is what the server must be known by: its key's fingerprint as ssh-keygen -l
	// prints it (SHA256:…), or the path of a known_hosts file.
	HostKey string
	// Dir is the folder; "" is the one that the account begins in.
	Dir string
	// Bandwidth limits the connection; nil is no limit.
	Bandwidth *Bandwidth
	// Timeout is how long connecting may take, and how long the server may be silent;
	// 30 s when 0.
	Timeout time.Duration
}

// String is the place, without the password.
func (o SFTPOptions) String() string { return "sftp://" + o.User + "@" + o.address() + "/" + o.Dir }

func (o SFTPOptions) address() string {
	port := o.Port
	if port == 0 {
		port = 22
	}
	return net.JoinHostPort(o.Host, fmt.Sprint(port))
}

func (o SFTPOptions) folder() string {
	if o.Dir == "" {
		return "."
	}
	return path.Clean(o.Dir)
}

func (o SFTPOptions) timeout() time.Duration {
	if o.Timeout <= 0 {
		return 30 * time.Second
	}
	return o.Timeout
}

func (o SFTPOptions) client() (*ssh.ClientConfig, error) {
	if o.Host == "" || o.User == "" {
		return nil, errors.New("host and user are needed")
	}
	c := &ssh.ClientConfig{User: o.User, Timeout: o.timeout(), ClientVersion: "SSH-2.0-cmsjobs"}
	if o.KeyFile != "" {
		text, err := os.ReadFile(o.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("reading the private key: %w", err)
		}
		signer, err := ssh.ParsePrivateKey(text)
		if err != nil {
			return nil, fmt.Errorf("reading the private key %s: %w", o.KeyFile, err)
		}
		c.Auth = append(c.Auth, ssh.PublicKeys(signer))
	}
	if o.Password != "" {
		c.Auth = append(c.Auth, ssh.Password(o.Password))
	}
	if len(c.Auth) == 0 {
		return nil, errors.New("a password or a key_file is needed")
	}
	return c, o.hostKeys(c)
}

// hostKeys has c check who answers. Its error names the key that the server has, so that
// who knows the server can compare.
func (o SFTPOptions) hostKeys(c *ssh.ClientConfig) error {
	stranger := func(key ssh.PublicKey) error {
		return fmt.Errorf("the server's key is %s (%s), which host_key does not name: compare it with the server's "+
			"own (ssh-keygen -lf on it) before you set it", ssh.FingerprintSHA256(key), key.Type())
	}
	if o.HostKey == "" || strings.HasPrefix(o.HostKey, "SHA256:") {
		c.HostKeyCallback = func(_ string, _ net.Addr, key ssh.PublicKey) error {
			if subtle.ConstantTimeCompare([]byte(ssh.FingerprintSHA256(key)), []byte(o.HostKey)) != 1 {
				return stranger(key)
			}
			return nil
		}
		return nil
	}
	known, err := knownhosts.New(o.HostKey)
	if err != nil {
		return fmt.Errorf("reading the known hosts: %w", err)
	}
	c.HostKeyAlgorithms = algorithms(known, o.address())
	c.HostKeyCallback = func(host string, at net.Addr, key ssh.PublicKey) error {
		if err := known(host, at, key); err != nil {
			return errors.Join(stranger(key), err)
		}
		return nil
	}
	return nil
}

// algorithms are those of the keys that are known of a host: a server with several keys
// must show one of them. nil where none is known.
func algorithms(known ssh.HostKeyCallback, address string) (names []string) {
	nobody, err := ssh.NewPublicKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)).Public())
	if err != nil {
		return nil
	}
	var unknown *knownhosts.KeyError
	if !errors.As(known(address, &net.TCPAddr{}, nobody), &unknown) {
		return nil
	}
	for _, k := range unknown.Want {
		if k.Key.Type() == ssh.KeyAlgoRSA {
			names = append(names, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		}
		names = append(names, k.Key.Type())
	}
	return names
}

// sshConnection is a connection that is made when it is needed, and made again after it
// broke.
type sshConnection struct {
	o      SFTPOptions
	config *ssh.ClientConfig

	lock   sync.Mutex
	client *sftp.Client
	secure *ssh.Client
}

// patience is how long a call may go on after its context ended, before the connection
// is given up: other calls use it too.
const patience = 5 * time.Second

// use calls f with a connection. It is given up when f goes on after ctx ended, and when
// the server hung up.
func (s *sshConnection) use(ctx context.Context, f func(*sftp.Client) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	client, err := s.connected(ctx)
	if err != nil {
		return err
	}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-done:
		case <-time.After(patience):
			s.drop(client)
		}
	})
	err = f(client)
	close(done)
	stop()
	if errors.Is(err, sftp.ErrSSHFxConnectionLost) || errors.Is(err, sftp.ErrSSHFxNoConnection) {
		s.drop(client)
	}
	return err
}

func (s *sshConnection) connected(ctx context.Context) (*sftp.Client, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.client != nil {
		return s.client, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.timeout())
	defer cancel()
	raw, err := s.o.Bandwidth.limited((&net.Dialer{}).DialContext)(ctx, "tcp", s.o.address())
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	conn, channels, requests, err := ssh.NewClientConn(raw, s.o.address(), s.config)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("signing in: %w", err), ignored(raw.Close()))
	}
	secure := ssh.NewClient(conn, channels, requests)
	client, err := sftp.NewClient(secure)
	if !stop() {
		err = errors.Join(context.Cause(ctx), err)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("beginning to transfer files: %w", err), ignored(secure.Close()))
	}
	s.client, s.secure = client, secure
	go s.watch(client, secure)
	return client, nil
}

// ignored is the error of closing what is of no more use.
func ignored(error) error { return nil }

// watch gives a connection up whose server is silent.
func (s *sshConnection) watch(client *sftp.Client, secure *ssh.Client) {
	gone := make(chan struct{})
	go func() {
		_ = secure.Wait()
		close(gone)
	}()
	for {
		select {
		case <-gone:
			s.drop(client)
			return
		case <-time.After(s.o.timeout() / 2):
		}
		silent := time.AfterFunc(s.o.timeout(), func() { s.drop(client) })
		_, _, err := secure.SendRequest("keepalive@openssh.com", true, nil)
		silent.Stop()
		if err != nil {
			s.drop(client)
			return
		}
	}
}

// drop closes a connection, if it is still the present one.
func (s *sshConnection) drop(client *sftp.Client) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.client == client && client != nil {
		_ = s.secure.Close() // nothing is left to be written
		s.client, s.secure = nil, nil
	}
}

func (s *sshConnection) close() error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.client == nil {
		return nil
	}
	err := errors.Join(s.client.Close(), s.secure.Close())
	s.client, s.secure = nil, nil
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
