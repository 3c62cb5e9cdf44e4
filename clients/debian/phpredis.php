<?php
// Drives phpredis (the line protocol: clients/README.md). An object whose
// connection was lost may stay dead, so that a new one is made after a failure.

[, $host, $port, $user, $password] = $argv;

function connect(): Redis
{
    global $host, $port, $user, $password;
    $client = new Redis();
    $client->connect($host, (int) $port);
    if ($password !== '') {
        $client->auth($user === '' ? $password : [$user, $password]);
    }
    return $client;
}

// Replies of -ERR come as false, all others are thrown.
function call(Redis $client, array $args)
{
    $reply = $client->rawCommand(...$args);
    if ($reply === false && $client->getLastError() !== null) {
        $text = $client->getLastError();
        $client->clearLastError();
        throw new RedisException($text);
    }
    return $reply;
}

// Allowed, denied and errors of n calls of CL.THROTTLE in one pipeline.
function tally(Redis $client, int $n, array $args): array
{
    $pipe = $client->pipeline();
    for ($i = 0; $i < $n; $i++) {
        $pipe->rawCommand(...$args);
    }
    $count = [0, 0, 0];
    foreach ($pipe->exec() as $reply) {
        $count[is_array($reply) && count($reply) === 5 ? ($reply[0] === 0 ? 0 : 1) : 2]++;
    }
    return $count;
}

$client = null;
while (($line = fgets(STDIN)) !== false) {
    $words = explode(' ', trim($line));
    $verb = array_shift($words);
    if ($verb === 'quit') {
        break;
    }
    try {
        if ($verb === 'version') {
            $reply = phpversion('redis');
        } else {
            $client ??= connect();
            $reply = $verb === 'call' ? call($client, $words) : tally($client, (int) array_shift($words), $words);
        }
        echo 'ok ', is_array($reply) ? implode(' ', $reply) : trim($reply), "\n";
    } catch (RedisException $e) {
        if (!preg_match('/^[A-Z]+ /', $e->getMessage())) {
            $client = null; // not a reply
        }
        echo 'err ', preg_replace('/\s+/', ' ', $e->getMessage()), "\n";
    }
}
