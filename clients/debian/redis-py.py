"""Drives redis-py with its default options (the line protocol: clients/README.md)."""
import sys

import redis

host, port, user, password = sys.argv[1:5]
client = redis.Redis(host, int(port), username=user or None, password=password or None)


def flat(reply):
    if isinstance(reply, list):
        return " ".join(flat(item) for item in reply)
    return reply.decode().strip() if isinstance(reply, bytes) else str(reply)


def pipe(n, args):
    """Allowed, denied and errors of n calls of CL.THROTTLE in one pipeline."""
    pipeline = client.pipeline(transaction=False)
    for _ in range(n):
        pipeline.execute_command(*args)
    replies = pipeline.execute(raise_on_error=False)
    good = [r for r in replies if isinstance(r, list) and len(r) == 5]
    allowed = sum(r[0] == 0 for r in good)
    return [allowed, len(good) - allowed, n - len(good)]


for line in sys.stdin:
    verb, *rest = line.split()
    try:
        if verb == "call":
            reply = client.execute_command(*rest)
        elif verb == "pipe":
            reply = pipe(int(rest[0]), rest[1:])
        elif verb == "version":
            reply = redis.__version__
        else:
            break
        print("ok", flat(reply), flush=True)
    except redis.RedisError as err:
        print("err", type(err).__name__, " ".join(str(err).split()), flush=True)
