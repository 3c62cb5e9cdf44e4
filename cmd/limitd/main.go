// Command limitd is the rate limiter. STUB.
package main

func main() {}
