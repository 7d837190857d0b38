-- What all scripts share: names of keys, rows, lines, claims.
--
-- The rule they keep: a row of K is in exactly one place: the line of its domain, the hand of a worker, the set of
-- the delayed, or held for its parent. Every move takes it out of one and puts it into the other in one script.
--
--   K                 hash    id -> header \n payload          F           set     fingerprints
--   K:job             hash    schema, job, rows, seen, held    K:workers   zset    worker -> deadline (ms)
--   K:line:<domain>   zset    -priority, rank:id               K:domains   zset    domains with a line and too few workers
--   K:claims          hash    domain -> workers                K:own:<w>   set     domains of a worker
--   K:hand:<w>        hash    id -> 1 fetched, 2 sent, 4:parent    K:news:<w>  set     its domains whose lines got longer
--   K:delayed         zset    due (s) -> id                    K:worker:<w> hash   last numbers and replies, to answer again
--   K:parents:<w>     set     of K:kids:<w>:<id> lists         K:crashed   set     rows that were sent at too many deaths
--   K:learned         hash    domain -> ms, what a governor knew  K:hungry    set     workers with too few domains
--   K:new:<w>         set     domains that it has not heard of   K:orphans   zset    domains of the dead -> time of death (ms)
--   K:lone            hash    id -> deaths in a row at which it was the only one sent

local K, F = KEYS[1], KEYS[2]
local JOB, WORKERS, DOMAINS, CLAIMS = K .. ':job', K .. ':workers', K .. ':domains', K .. ':claims'
local DELAYED, CRASHED, LEARNED, HUNGRY = K .. ':delayed', K .. ':crashed', K .. ':learned', K .. ':hungry'
local ORPHANS, ORPHANS_MS, LONE = K .. ':orphans', 600000, K .. ':lone'
local call = redis.call

local function now_ms()
  local t = call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function line_of(domain) return K .. ':line:' .. domain end
local function hand_of(w) return K .. ':hand:' .. w end
local function own_of(w) return K .. ':own:' .. w end
local function news_of(w) return K .. ':news:' .. w end
local function new_of(w) return K .. ':new:' .. w end
local function worker_of(w) return K .. ':worker:' .. w end

-- Is the job there, and this worker alive in it? Anything else is said, never taken for an empty job.
local function standing(w)
  local job = call('HMGET', JOB, 'rows', 'seen')
  if not job[1] then return 'lost', 'its record is gone' end
  if call('HLEN', K) ~= tonumber(job[1]) then return 'lost', call('HLEN', K) .. ' of ' .. job[1] .. ' requests are left' end
  if call('SCARD', F) < tonumber(job[2]) then return 'lost', call('SCARD', F) .. ' of ' .. job[2] .. ' fingerprints are left' end
  if w and not call('ZSCORE', WORKERS, w) then return 'fenced', '' end
  return 'ok', ''
end

-- domain, priority, rank, crashes of a row
local function head(value)
  return string.match(value, '^([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t\n]*)')
end

-- The line of *domain* got longer: its workers hear of it, and others may claim it while it has too few.
local function tell(domain, most)
  local claimed = call('HGET', CLAIMS, domain)
  local n = 0
  if claimed then
    for w in string.gmatch(claimed, '%d+') do
      call('SADD', news_of(w), domain)
      n = n + 1
    end
  end
  if n < most then call('ZADD', DOMAINS, 'NX', now_ms(), domain) end
end

local function into_line(id, value, told)
  local domain, priority, rank = head(value)
  call('ZADD', line_of(domain), -tonumber(priority), rank .. ':' .. id)
  told[domain] = true
end

local function tell_all(told, most)
  for domain in pairs(told) do tell(domain, most) end
end

local function claimed_by(domain, w)
  local claimed = call('HGET', CLAIMS, domain)
  if not claimed then return false, 0 end
  local n, mine = 0, false
  for other in string.gmatch(claimed, '%d+') do
    n = n + 1
    if other == w then mine = true end
  end
  return mine, n
end

local function claim(domain, w, n, most)
  local claimed = call('HGET', CLAIMS, domain)
  call('HSET', CLAIMS, domain, claimed and (claimed .. ' ' .. w) or w)
  call('SADD', own_of(w), domain)
  call('SADD', new_of(w), domain)
  if n + 1 >= most then call('ZREM', DOMAINS, domain) end
end

local function release(domain, w, most)
  local left = {}
  for other in string.gmatch(call('HGET', CLAIMS, domain) or '', '%d+') do
    if other ~= w then left[#left + 1] = other end
  end
  if #left > 0 then call('HSET', CLAIMS, domain, table.concat(left, ' ')) else call('HDEL', CLAIMS, domain) end
  call('SREM', own_of(w), domain)
  call('SREM', news_of(w), domain)
  call('SREM', new_of(w), domain)
  if #left < most and call('EXISTS', line_of(domain)) == 1 then call('ZADD', DOMAINS, 'NX', now_ms(), domain) end
end

-- Drop a row for good.
local function forget(id)
  local gone = call('HDEL', K, id)
  if gone == 1 then call('HINCRBY', JOB, 'rows', -1) end
  return gone
end

-- The children that wait for the end of *parent*: they may go (freed) or die with it.
local function children(w, parent, freed, told)
  local kids = K .. ':kids:' .. w .. ':' .. parent
  if call('SREM', K .. ':parents:' .. w, parent) == 0 then return end
  for _, id in ipairs(call('LRANGE', kids, 0, -1)) do
    call('HINCRBY', JOB, 'held', -1)
    call('HDEL', hand_of(w), id)
    if freed then
      local value = call('HGET', K, id)
      if value then into_line(id, value, told) end
    else
      forget(id)
    end
  end
  call('DEL', kids)
end

-- A held child moves by itself, or ends: its parent has it no more.
local function leave_parent(w, id, where)
  local parent = string.match(where, '^4:(%d+)$')
  if parent and call('LREM', K .. ':kids:' .. w .. ':' .. parent, 1, id) == 1 then call('HINCRBY', JOB, 'held', -1) end
end

-- Worker *w* has nothing: what its hand holds goes back.
local function empty_hand(w, most)
  if call('EXISTS', hand_of(w)) == 0 then return end
  local told = {}
  for _, parent in ipairs(call('SMEMBERS', K .. ':parents:' .. w)) do children(w, parent, false, told) end
  for _, id in ipairs(call('HKEYS', hand_of(w))) do
    local value = call('HGET', K, id)
    if value then into_line(id, value, told) end
  end
  call('DEL', hand_of(w))
  tell_all(told, most)
end

-- Give back what a dead or leaving worker has. Rows that were sent count one crash. A death takes all that is in flight with
-- it, and one from outside may well meet a row that is tried alone: only a row that was sent alone at two of its deaths in a
-- row can come to the last that it is allowed. Returns how many rows came back.
local function reclaim(w, most, max_crashes, crashed)
  local told, back = {}, 0
  for _, parent in ipairs(call('SMEMBERS', K .. ':parents:' .. w)) do children(w, parent, false, told) end
  local hand, sent = call('HGETALL', hand_of(w)), 0
  for i = 2, #hand, 2 do
    if hand[i] == '2' then sent = sent + 1 end
  end
  for i = 1, #hand, 2 do
    local id, value = hand[i], call('HGET', K, hand[i])
    if value then
      back = back + 1
      local crashes = 0
      if hand[i + 1] == '2' and crashed then
        local domain, priority, rank, old = head(value)
        crashes = tonumber(old) + 1
        local alone = 0
        if sent == 1 then alone = call('HINCRBY', LONE, id, 1) else call('HDEL', LONE, id) end
        if alone < 2 and max_crashes > 1 then crashes = math.max(crashes - 1, math.min(crashes, max_crashes - 1)) end
        local _, stop = string.find(value, '\n', 1, true)
        value = domain .. '\t' .. priority .. '\t' .. rank .. '\t' .. crashes .. '\n' .. string.sub(value, stop + 1)
        call('HSET', K, id, value)
      end
      if crashes >= max_crashes then call('SADD', CRASHED, id) else into_line(id, value, told) end
    end
  end
  local now = now_ms()
  if crashed then call('ZREMRANGEBYSCORE', ORPHANS, '-inf', now - ORPHANS_MS) end
  for _, domain in ipairs(call('SMEMBERS', own_of(w))) do
    release(domain, w, most)
    if crashed then call('ZADD', ORPHANS, now, domain) end
  end
  call('DEL', hand_of(w), own_of(w), news_of(w), new_of(w), worker_of(w), K .. ':parents:' .. w)
  call('ZREM', WORKERS, w)
  call('SREM', HUNGRY, w)
  tell_all(told, most)
  return back
end
