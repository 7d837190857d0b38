-- One beat of a worker: renew its lease, bury the dead, bring what is due, release, claim, fetch.
-- ARGV: worker, number, lease (ms), workers a domain, may it bury the dead? crashes that are too many,
--       domains to claim, rows for a domain that says nothing else, rows in all,
--       due by (s; '' for this server's own time), rows that may come due, say how full the server is? has it nothing in hand?
--       n, n * (domain to release), n, n * (domain, what its governor knows), n, n * (domain, rows wanted),
--       n, n * (key to watch, the taker that uses it as a queue of seeds; '' for dead letters)
-- Returns: status, what, { time (ms), rows, delayed, held, seen, domains to claim, domains, workers, hungry, next due, reclaimed,
--          bytes used, most bytes, policy },
--          flat id, row ..., flat domain, rows left in its line ...,
--          flat id, row ... of crashed ones,
--          a number for each watched key: entries in the queue and takers that fell silent; times that a replay was requested,
--          flat domain that is new, did its last holder die? ms since it was said, what a governor knew of it ...

local w, number, lease_ms, most = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local may_reclaim, max_crashes = ARGV[5] == '1', tonumber(ARGV[6])
local claims, usual, room = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local due_by, due_limit = ARGV[10], tonumber(ARGV[11])
local ask_memory, has_nothing = ARGV[12] == '1', ARGV[13] == '1'
local at = 13
local function take() at = at + 1; return ARGV[at] end

local state, what = standing(w)
if state ~= 'ok' then return { state, what } end
local now = now_ms()
call('ZADD', WORKERS, now + lease_ms, w)

local reclaimed = 0
if may_reclaim then
  for _, dead in ipairs(call('ZRANGEBYSCORE', WORKERS, '-inf', '(' .. now, 'LIMIT', 0, 1)) do
    reclaimed = reclaim(dead, most, max_crashes, true)
  end
end

local told = {}
if due_by == '' then due_by = now / 1000 end
for _, id in ipairs(call('ZRANGEBYSCORE', DELAYED, '-inf', due_by, 'LIMIT', 0, due_limit)) do
  call('ZREM', DELAYED, id)
  local value = call('HGET', K, id)
  if value then into_line(id, value, told) end
end
tell_all(told, most)

-- A failover lost what was said last: rows that this worker has ended long ago are in its hand again. Somebody must do them.
if has_nothing and call('HEXISTS', worker_of(w), 'fetch') == 1 and call('HGET', worker_of(w), 'fetch') ~= number then
  empty_hand(w, most)
end

for _ = 1, tonumber(take()) do release(take(), w, most) end
for _ = 1, tonumber(take()) do
  local domain, text = take(), take()
  call('HSET', LEARNED, domain, now .. ' ' .. text)
end
local wants, order = {}, {}
for _ = 1, tonumber(take()) do
  local domain, n = take(), tonumber(take())
  wants[domain] = n
  order[#order + 1] = domain
end

local watched = {}
for i = 1, tonumber(take()) do
  local key, taker = take(), take()
  local kind, n = call('TYPE', key)['ok'], 0
  if taker == '' then
    n = kind == 'hash' and call('HGET', key, 'requests') or 0
  else
    local takers = key .. ':takers'
    if kind == 'list' then n = call('LLEN', key) elseif kind == 'set' then n = call('SCARD', key)
    elseif kind == 'zset' then n = call('ZCARD', key) elseif kind ~= 'none' then n = 1 end
    call('ZADD', takers, 'XX', now + lease_ms, taker)
    n = n + call('ZCOUNT', takers, '-inf', '(' .. now)
  end
  watched[i] = tostring(n)
end

local got, offset = 0, 0
if claims > 0 then
  while got < claims do
    local some = call('ZRANGE', DOMAINS, offset, offset + claims - 1)
    if #some == 0 then break end
    for _, domain in ipairs(some) do
      local mine, n = claimed_by(domain, w)
      if mine then
        offset = offset + 1
      elseif call('EXISTS', line_of(domain)) == 0 then
        call('ZREM', DOMAINS, domain)
      elseif got < claims then
        claim(domain, w, n, most)
        if n + 1 < most then offset = offset + 1 end
        got = got + 1
        if not wants[domain] then order[#order + 1] = domain end
        wants[domain] = wants[domain] or usual
      end
    end
  end
end
local waiting, claimed, workers = call('ZCARD', DOMAINS), call('HLEN', CLAIMS), call('ZCARD', WORKERS)
local domains = most == 1 and waiting + claimed or math.max(waiting, claimed)
local unclaimed = waiting - offset
if claims > 0 and got < claims then unclaimed = 0 end
local share = math.floor(domains * math.min(most, workers) / workers)
if claims > 0 and call('SCARD', own_of(w)) < share then call('SADD', HUNGRY, w) else call('SREM', HUNGRY, w) end
for _, domain in ipairs(call('SMEMBERS', news_of(w))) do
  if wants[domain] == nil then
    wants[domain] = 0 -- only its length: the worker asks when it has room
    order[#order + 1] = domain
  end
end
call('DEL', news_of(w))

local hand, taken, rows, lines, news = hand_of(w), {}, {}, {}, {}
local last = call('HMGET', worker_of(w), 'fetch', 'taken', 'fresh')
-- What is to be said of domains that are new to this worker, whichever script gave them to it.
local fresh, said = {}, {}
for _, domain in ipairs(call('SMEMBERS', new_of(w))) do
  fresh[domain] = call('ZREM', ORPHANS, domain) == 1 and '1' or '0'
end
if last[1] == number then
  for flag, domain in string.gmatch(last[3] or '', '(%d)([^\n]+)\n') do fresh[domain] = flag end
  -- The reply was lost on the way: what it held is in this worker's hand, and goes again.
  for id in string.gmatch(last[2], '%S+') do
    local value = call('HEXISTS', hand, id) == 1 and call('HGET', K, id)
    if value then
      taken[#taken + 1] = id
      rows[#rows + 1] = id
      rows[#rows + 1] = value
    end
  end
end
for _, domain in ipairs(order) do
  local line, n = line_of(domain), math.min(wants[domain], room)
  if n > 0 then
    local members = call('ZRANGE', line, 0, n - 1)
    if #members > 0 then call('ZREMRANGEBYRANK', line, 0, #members - 1) end
    for _, member in ipairs(members) do
      local id = string.match(member, ':(%d+)$')
      local value = call('HGET', K, id)
      if value then
        call('HSET', hand, id, '1')
        taken[#taken + 1] = id
        rows[#rows + 1] = id
        rows[#rows + 1] = value
      end
    end
    room = room - #members
  end
  lines[#lines + 1] = domain
  lines[#lines + 1] = tostring(call('ZCARD', line))
end
for domain, flag in pairs(fresh) do
  local at, text = string.match(call('HGET', LEARNED, domain) or '', '^(%d+) (.*)$')
  news[#news + 1] = domain
  news[#news + 1] = flag
  news[#news + 1] = at and tostring(now - at) or '0'
  news[#news + 1] = text or '{}'
  said[#said + 1] = flag .. domain .. '\n'
end
call('DEL', new_of(w))
call('HSET', worker_of(w), 'fetch', number, 'taken', table.concat(taken, ' '), 'fresh', table.concat(said))

local crashed = {}
for _, id in ipairs(call('SRANDMEMBER', CRASHED, 100)) do
  call('SREM', CRASHED, id)
  local value = call('HGET', K, id)
  if value then
    call('HSET', hand, id, '2')
    crashed[#crashed + 1] = id
    crashed[#crashed + 1] = value
  end
end
local memory = ask_memory and call('INFO', 'memory') or ''
local due = call('ZRANGE', DELAYED, 0, 0, 'WITHSCORES')
local totals = {
  tostring(now), tostring(call('HLEN', K)), tostring(call('ZCARD', DELAYED)), call('HGET', JOB, 'held') or '0',
  tostring(call('SCARD', F)), tostring(unclaimed), tostring(domains),
  tostring(workers), tostring(call('SCARD', HUNGRY)), due[2] or '', tostring(reclaimed),
  string.match(memory, 'used_memory:(%d+)') or '', string.match(memory, 'maxmemory:(%d+)') or '',
  string.match(memory, 'maxmemory_policy:([%w-]+)') or '',
}
return { 'ok', '', totals, rows, lines, crashed, watched, news }
