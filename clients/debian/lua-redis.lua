-- Drives lua-redis (the line protocol: clients/README.md). An object whose
-- connection was lost is dead, so that a new one is made after a failure.
local redis = require 'redis'

local host, port, user, password = arg[1], tonumber(arg[2]), arg[3], arg[4]
local client

-- Commands of its own are defined once, by the name of the method.
for method, name in pairs { cl_throttle = 'CL.THROTTLE', rl_take = 'RL.TAKE', client = 'CLIENT' } do
  redis.commands[method] = redis.command(name)
end
local function method(name) return name:lower():gsub('%.', '_') end

local function connected()
  if not client then
    local fresh = redis.connect { host = host, port = port }
    if user ~= '' then fresh:auth(user, password) elseif password ~= '' then fresh:auth(password) end
    client = fresh
  end
  return client
end

local function call(args)
  return connected()[method(args[1])](client, unpack(args, 2))
end

-- Allowed, denied and errors of n calls of CL.THROTTLE in one pipeline. An
-- error among the replies ends it, and all are counted as errors.
local function tally(n, args)
  local name, count = method(args[1]), { 0, 0, 0 }
  local replies = connected():pipeline(function(p)
    for _ = 1, n do p[name](p, unpack(args, 2)) end
  end)
  for _, reply in ipairs(replies) do
    local kind = (type(reply) ~= 'table' or #reply ~= 5) and 3 or reply[1] == 0 and 1 or 2
    count[kind] = count[kind] + 1
  end
  return count
end

local function answer(verb, words)
  if verb == 'version' then return redis._VERSION:match('%S+$') end
  if verb == 'call' then return call(words) end
  return tally(tonumber(table.remove(words, 1)), words)
end

io.stdout:setvbuf 'line'
for line in io.lines() do
  local words = {}
  for word in line:gmatch '%S+' do words[#words + 1] = word end
  local verb = table.remove(words, 1)
  if verb == 'quit' then break end
  local ok, reply = pcall(answer, verb, words)
  if ok then
    print('ok ' .. (type(reply) == 'table' and table.concat(reply, ' ') or tostring(reply):gsub('%s+$', '')))
  else
    local text = tostring(reply):gsub('%s+', ' ')
    if not text:find 'redis error' then client = nil end -- not a reply
    print('err ' .. text)
  end
end
