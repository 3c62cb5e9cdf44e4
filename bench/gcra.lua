-- GCRA in a Redis script: the baseline that limitd is measured against.
--
--   EVALSHA sha 1 key max_burst count period quantity
--
-- Arguments and the five integers of the reply are those of CL.THROTTLE, for
-- quantity >= 0. The key holds the theoretical arrival time in microseconds and
-- lives until then. Doubles hold microseconds exactly until the year 2255;
-- redis.call writes a number with 17 digits, so nothing is lost on the way. A
-- denied call, and a peek, write nothing.

local call, ceil, floor = redis.call, math.ceil, math.floor

local limit = ARGV[1] + 1
local interval = ARGV[3] * 1e6 / ARGV[2]
local increment = interval * ARGV[4]
local tau = interval * limit

local time = call('TIME')
local now = time[1] * 1e6 + time[2]

local debt = (call('GET', KEYS[1]) or now) - now
if debt < 0 then debt = 0 end

local wait = debt + increment - tau
if wait > 0 then
  local retry = -1
  if increment <= tau then retry = ceil(wait / 1e6) end
  local remaining = floor((tau - debt) / interval)
  if remaining < 0 then remaining = 0 end
  return {1, limit, remaining, retry, ceil(debt / 1e6)}
end

if increment > 0 then
  debt = debt + increment
  call('SET', KEYS[1], now + debt, 'PX', ceil(debt / 1e3))
end
return {0, limit, floor((tau - debt) / interval), -1, ceil(debt / 1e6)}
