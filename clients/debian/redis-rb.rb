# Drives redis-rb with its default options (the line protocol: clients/README.md).
require "redis"

$stdout.sync = true
host, port, user, password = ARGV.map { |arg| arg.empty? ? nil : arg }
client = Redis.new(host: host, port: port.to_i, username: user, password: password)

# Allowed, denied and errors of n calls of CL.THROTTLE in one pipeline. The
# pipeline raises the first error of any; each future tells its own.
def tally(client, n, args)
  futures = []
  begin
    client.pipelined { |pipe| n.times { futures << pipe.call(*args) } }
  rescue Redis::CommandError => e
    warn e.message
  end
  count = futures.map do |future|
    begin
      future.value[0] == 0 ? 0 : 1
    rescue Redis::BaseError, NoMethodError
      2
    end
  end.tally
  (0..2).map { |kind| count[kind] || 0 }
end

while (line = $stdin.gets)
  verb, *rest = line.split
  begin
    reply =
      case verb
      when "call" then client.call(*rest)
      when "pipe" then tally(client, rest[0].to_i, rest[1..])
      when "version" then Redis::VERSION
      else break
      end
    puts "ok #{Array(reply).flatten.join(' ')}"
  rescue Redis::BaseError, SystemCallError => e
    puts "err #{e.class} #{e.message.split.join(' ')}"
  end
end
