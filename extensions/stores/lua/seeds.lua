-- Take seeds so that none is lost on the way, and settle those that were taken before.
--
-- The rule it keeps: an entry leaves the queue into the taken of its taker, and that only when its taker says that its request
-- is stored, or that it is bad. The taken of a taker that fell silent go back to where they came from.
--
-- KEYS: the queue (a list, a set or a sorted set). ARGV: taker, lease (ms), how many, last entry that it knows of,
--       n, n * (entry that is stored),  n, n * (bad entry, what goes to the poison list)
-- Returns: flat entry, bytes ..., entries left in the queue

local queue, taker, lease_ms = KEYS[1], ARGV[1], tonumber(ARGV[2])
local wanted, known = tonumber(ARGV[3]), tonumber(ARGV[4])
local TAKERS, LAST, POISON = queue .. ':takers', queue .. ':last', queue .. ':poison'
local call = redis.call
local at = 4
local function take() at = at + 1; return ARGV[at] end
local function taken_of(t) return queue .. ':taken:' .. t end
local t = call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local mine = taken_of(taker)

for _ = 1, tonumber(take()) do call('HDEL', mine, take()) end
for _ = 1, tonumber(take()) do
  local entry, why = take(), take()
  if call('HDEL', mine, entry) == 1 then call('RPUSH', POISON, why) end
end
if lease_ms > 0 then call('ZADD', TAKERS, now + lease_ms, taker) else call('ZADD', TAKERS, 0, taker) end

-- A kept entry is its kind, its score and its bytes: "l 0 <bytes>".
local function put_back(kept)
  local kind, score, bytes = string.match(kept, '^(%a) (%S+) (.*)$')
  if kind == 'l' then call('LPUSH', queue, bytes)
  elseif kind == 's' then call('SADD', queue, bytes)
  else call('ZADD', queue, score, bytes) end
end

for _, silent in ipairs(call('ZRANGEBYSCORE', TAKERS, '-inf', '(' .. now, 'LIMIT', 0, 10)) do
  for _, kept in ipairs(call('HVALS', taken_of(silent))) do put_back(kept) end
  call('DEL', taken_of(silent))
  call('ZREM', TAKERS, silent)
end

local out = {}
local function hand(kind, score, bytes)
  local entry = call('INCR', LAST)
  call('HSET', mine, entry, kind .. ' ' .. score .. ' ' .. bytes)
  out[#out + 1] = tostring(entry)
  out[#out + 1] = bytes
end

-- The last answer may have been lost on the way: what it held comes again.
local kept = call('HGETALL', mine)
for i = 1, #kept, 2 do
  if tonumber(kept[i]) > known then
    out[#out + 1] = kept[i]
    out[#out + 1] = string.match(kept[i + 1], '^%a %S+ (.*)$')
  end
end

local kind, left = call('TYPE', queue)['ok'], 0
if wanted > 0 and #out == 0 then
  if kind == 'list' then
    for _, bytes in ipairs(call('LPOP', queue, wanted) or {}) do hand('l', '0', bytes) end
  elseif kind == 'set' then
    for _, bytes in ipairs(call('SPOP', queue, wanted)) do hand('s', '0', bytes) end
  elseif kind == 'zset' then
    local popped = call('ZPOPMAX', queue, wanted)
    for i = 1, #popped, 2 do hand('z', popped[i + 1], popped[i]) end
  elseif kind ~= 'none' then
    return redis.error_reply('ERR ' .. queue .. ' is a ' .. kind .. ': a list, a set or a sorted set is needed')
  end
end
if kind == 'list' then left = call('LLEN', queue)
elseif kind == 'set' then left = call('SCARD', queue)
elseif kind == 'zset' then left = call('ZCARD', queue) end
if call('EXISTS', mine) == 0 then call('ZREM', TAKERS, taker) end
return { out, left }
