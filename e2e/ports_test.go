package e2e

import (
	"net"
	"strconv"
	"syscall"
	"testing"
)

// reservation holds a port for as long as a test runs: a socket that is bound
// and does not listen. The node can bind the port again and again (both sides
// set SO_REUSEADDR, and only one listens), but the kernel gives it to nobody
// else, neither to a ":0" listener nor to an outgoing connection.
type reservation struct {
	fd   int
	port int
}

var (
	loopback     = [4]byte{127, 0, 0, 1}
	allAddresses = [4]byte{}
)

// reserve binds port on an address; port 0 lets the kernel choose one that is free there.
func reserve(on [4]byte, port int) (reservation, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return reservation{}, err
	}
	err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: on})
	}
	var name syscall.Sockaddr
	if err == nil {
		name, err = syscall.Getsockname(fd)
	}
	if err != nil {
		syscall.Close(fd)
		return reservation{}, err
	}
	return reservation{fd, name.(*syscall.SockaddrInet4).Port}, nil
}

func (r reservation) close() { syscall.Close(r.fd) }

// reservePorts reserves n ports until the test ends.
func reservePorts(t testing.TB, n int) []int {
	t.Helper()
	ports := make([]int, n)
	for i := range ports {
		ports[i] = reserveOn(t, loopback)
	}
	return ports
}

// reserveOn reserves a port on an address, or on all, until the test ends. A port that is
// free on loopback's first address need not be free on all: other tests connect from others.
func reserveOn(t testing.TB, on [4]byte) int {
	t.Helper()
	r, err := reserve(on, 0)
	if err != nil {
		t.Fatalf("reserve a port: %v", err)
	}
	t.Cleanup(r.close)
	return r.port
}

// reserveLocal reserves what `limitd local` takes: n ports in a row, and each of
// them + 1000. It returns the first.
func reserveLocal(t testing.TB, n int) int {
	t.Helper()
	for range 200 {
		first, err := reserve(loopback, 0)
		if err != nil {
			t.Fatalf("reserve a port: %v", err)
		}
		held := []reservation{first}
		for i := 0; i < n && err == nil; i++ {
			for _, port := range []int{first.port + i, first.port + i + 1000} {
				if port == first.port {
					continue
				}
				var r reservation
				if r, err = reserve(loopback, port); err != nil {
					break
				}
				held = append(held, r)
			}
		}
		for _, r := range held {
			if err == nil {
				t.Cleanup(r.close)
			} else {
				r.close()
			}
		}
		if err == nil {
			return first.port
		}
	}
	t.Fatal("no free ports in a row")
	return 0
}

func addr(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func TestReservedPortCanBeListenedOn(t *testing.T) {
	listenThrice(t, "127.0.0.1", reservePorts(t, 1)[0])
	listenThrice(t, "0.0.0.0", reserveOn(t, allAddresses))
}

func listenThrice(t *testing.T, on string, port int) {
	for i := range 3 {
		ln, err := net.Listen("tcp4", net.JoinHostPort(on, strconv.Itoa(port)))
		if err != nil {
			t.Fatalf("listen for the %d. time: %v", i+1, err)
		}
		if second, err := net.Listen("tcp", addr(port)); err == nil {
			second.Close()
			t.Fatal("two listeners on one port")
		}
		c, err := net.Dial("tcp", addr(port))
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		ln.Close()
		if c, err := net.Dial("tcp", addr(port)); err == nil {
			c.Close()
			t.Fatalf("port %d answers though nobody listens", port)
		}
	}
}
