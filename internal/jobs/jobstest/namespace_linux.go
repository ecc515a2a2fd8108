package jobstest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Network is a switch of this machine's own with hosts on it: network
// namespaces, each with an address and a cable that can be pulled.
type Network struct {
	name  string
	hosts int
}

// NewNetwork makes a network of so many hosts, 10.77.N.1 for us and from
// 10.77.N.11 on for them. It needs root and iproute2; the error says what is
// missing.
func NewNetwork(hosts int) (*Network, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("network namespaces need root")
	}
	n := &Network{name: fmt.Sprintf("cj%d", os.Getpid()%100000), hosts: hosts}
	steps := []string{"link add NAME type bridge", "addr add OURS/24 dev NAME", "link set NAME up"}
	for i := range hosts {
		steps = append(steps, "netns add "+n.Space(i),
			fmt.Sprintf("link add NAMEv%d type veth peer name eth0 netns %s", i, n.Space(i)),
			fmt.Sprintf("link set NAMEv%d master NAME up", i), fmt.Sprintf("-n %s link set lo up", n.Space(i)),
			fmt.Sprintf("-n %s addr add %s/24 dev eth0", n.Space(i), n.Host(i)),
			fmt.Sprintf("-n %s link set eth0 up", n.Space(i)))
	}
	for _, step := range steps {
		if err := n.ip(step); err != nil {
			n.Close()
			return nil, err
		}
	}
	return n, nil
}

// Space is the namespace of host i.
func (n *Network) Space(i int) string { return fmt.Sprintf("%s-%d", n.name, i) }

func (n *Network) subnet() string { return fmt.Sprintf("10.77.%d", os.Getpid()%250) }

// Host is the address of host i.
func (n *Network) Host(i int) string { return fmt.Sprintf("%s.%d", n.subnet(), 11+i) }

// Address is ours.
func (n *Network) Address() string { return n.subnet() + ".1" }

// Cut pulls host i's cable; Join plugs it in again.
func (n *Network) Cut(i int) error { return n.ip(fmt.Sprintf("link set NAMEv%d down", i)) }

// Join plugs host i's cable in.
func (n *Network) Join(i int) error { return n.ip(fmt.Sprintf("link set NAMEv%d up", i)) }

// Close removes the network.
func (n *Network) Close() {
	for i := range n.hosts {
		_ = n.ip("netns del " + n.Space(i)) // its cable goes with it; what is not there need not go
	}
	_ = n.ip("link del NAME")
}

func (n *Network) ip(words string) error {
	words = strings.NewReplacer("NAME", n.name, "OURS", n.Address()).Replace(words)
	if out, err := exec.Command("ip", strings.Fields(words)...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", words, err, out)
	}
	return nil
}

// InNamespace calls f within a network namespace: what f starts lives in it. ""
// is our own.
func InNamespace(space string, f func() error) error {
	if space == "" {
		return f()
	}
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine
		there, err := os.Open("/var/run/netns/" + space)
		if err == nil {
			err = unix.Setns(int(there.Fd()), unix.CLONE_NEWNET)
			there.Close()
		}
		if err == nil {
			err = f()
		}
		failed <- err
	}()
	return <-failed
}

// SmallDisk puts a small file system into a folder until the test ends, with options of tmpfs. Without
// the right to mount, the test is skipped.
func SmallDisk(t testing.TB, folder, options string) {
	t.Helper()
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, options); err != nil {
		Skip(t, "no small disk, as mounting needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(folder, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}
