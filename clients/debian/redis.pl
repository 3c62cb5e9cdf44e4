# Drives Redis.pm (the line protocol: clients/README.md). Without `reconnect` an
# object is dead for good once its connection is lost.
use strict;
use warnings;
use Redis;

$| = 1;
my ($host, $port, $user, $password) = @ARGV;
my $client;

sub connected {
    return $client //= Redis->new(
        server => "$host:$port", reconnect => 10, every => 100_000,
        ($user ne '' ? (username => $user) : ()), ($password ne '' ? (password => $password) : ()),
    );
}

# A command is a method; limitd's names have a dot, so that they are called by name.
sub call {
    my ($name, @args) = @_;
    return connected()->$name(@args);
}

# Allowed, denied and errors of $n calls of CL.THROTTLE in one pipeline.
sub tally {
    my ($n, @args) = @_;
    my @count = (0, 0, 0);
    for (1 .. $n) {
        call(@args, sub {
            my ($reply, $error) = @_;
            $count[ defined $error || @$reply != 5 ? 2 : $reply->[0] == 0 ? 0 : 1 ]++;
        });
    }
    connected()->wait_all_responses;
    return \@count;
}

while (my $line = <STDIN>) {
    my ($verb, @rest) = split ' ', $line;
    last if $verb eq 'quit';
    my $reply = eval { $verb eq 'call' ? call(@rest) : $verb eq 'pipe' ? tally(@rest) : $Redis::VERSION };
    if (my $error = $@) {
        $error =~ s/\s+/ /g;
        print "err $error\n";
        next;
    }
    $reply = join(' ', @$reply) if ref $reply;
    print "ok ", $reply =~ s/\s+$//r, "\n";
}
