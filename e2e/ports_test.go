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

// reserve binds port on loopback; 0 lets the kernel choose.
func reserve(port int) (reservation, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return reservation{}, err
	}
	err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
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
		r, err := reserve(0)
		if err != nil {
			t.Fatalf("reserve a port: %v", err)
		}
		t.Cleanup(r.close)
		ports[i] = r.port
	}
	return ports
}

// reserveLocal reserves what `limitd local` takes: n ports in a row, and each of
// them + 1000. It returns the first.
func reserveLocal(t testing.TB, n int) int {
	t.Helper()
	for range 200 {
		first, err := reserve(0)
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
				if r, err = reserve(port); err != nil {
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
	port := reservePorts(t, 1)[0]
	for i := range 3 {
		ln, err := net.Listen("tcp", addr(port))
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
