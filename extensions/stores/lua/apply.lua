-- Take in one batch of a worker: new rows, fingerprints, moves, ends. All or nothing, once.
-- ARGV: worker, number of the batch, workers a domain, domains it may claim,
--       n, n * (id, domain, priority, rank, crashes, state, due or parent, fingerprint, payload),
--       n, n * fingerprint,  n, n * (id, state, due),  n, n * id (ends)
-- Returns: status, what, a letter for each row (d duplicate, w in hand, p in line), ends that were refused

local w, number, most, budget = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local at = 4
local function take() at = at + 1; return ARGV[at] end

local state, what = standing(w)
if state ~= 'ok' then return { state, what, '', '' } end
local last = call('HMGET', worker_of(w), 'number', 'verdicts', 'refused')
if last[1] == number then return { 'ok', 'again', last[2], last[3] } end

local hand, told = hand_of(w), {}
local verdicts, rows, seen, held = {}, 0, 0, 0
local claims = {} -- domain -> does its next row go into this worker's hand?

local function to_hand(domain)
  if claims[domain] == nil then
    local mine, n = claimed_by(domain, w)
    if not mine and n < most and budget > 0 then
      claim(domain, w, n, most)
      budget = budget - 1
      mine = true
    end
    claims[domain] = mine and call('EXISTS', line_of(domain)) == 0
  end
  return claims[domain]
end

for i = 1, tonumber(take()) do
  local id, domain, priority, rank, crashes = take(), take(), take(), take(), take()
  local where, extra, fingerprint, payload = take(), take(), take(), take()
  if fingerprint ~= '' and call('SADD', F, fingerprint) == 0 then
    verdicts[i] = 'd'
  else
    if fingerprint ~= '' then seen = seen + 1 end
    rows = rows + call('HSET', K, id, domain .. '\t' .. priority .. '\t' .. rank .. '\t' .. crashes .. '\n' .. payload)
    verdicts[i] = 'p'
    if where == '3' then
      call('ZADD', DELAYED, extra, id)
    elseif where == '4' then
      call('RPUSH', K .. ':kids:' .. w .. ':' .. extra, id)
      call('SADD', K .. ':parents:' .. w, extra)
      call('HSET', hand, id, '4:' .. extra)
      held = held + 1
    elseif where == '2' then
      call('HSET', hand, id, '2')
      verdicts[i] = 'w'
    elseif where == '1' and to_hand(domain) then
      call('HSET', hand, id, '1')
      verdicts[i] = 'w'
    else
      call('ZADD', line_of(domain), -tonumber(priority), rank .. ':' .. id)
      claims[domain] = false
      told[domain] = true
    end
  end
end
for _ = 1, tonumber(take()) do seen = seen + call('SADD', F, take()) end
if rows ~= 0 then call('HINCRBY', JOB, 'rows', rows) end
if seen ~= 0 then call('HINCRBY', JOB, 'seen', seen) end
if held ~= 0 then call('HINCRBY', JOB, 'held', held) end

local refused = {}
for _ = 1, tonumber(take()) do
  local id, where, due = take(), take(), take()
  local was = call('HGET', hand, id)
  if was then
    leave_parent(w, id, was)
    if where == '1' or where == '2' then
      call('HSET', hand, id, where)
    else
      call('HDEL', hand, id)
      if where == '3' then call('ZADD', DELAYED, due, id) else into_line(id, call('HGET', K, id), told) end
    end
  end
end
for _ = 1, tonumber(take()) do
  local id = take()
  local was = call('HGET', hand, id)
  if was then
    leave_parent(w, id, was)
    call('HDEL', hand, id)
    forget(id)
  else
    refused[#refused + 1] = id
  end
  children(w, id, true, told)
end
tell_all(told, most)
local verdict, refusals = table.concat(verdicts), table.concat(refused, ' ')
call('HSET', worker_of(w), 'number', number, 'verdicts', verdict, 'refused', refusals)
return { 'ok', '', verdict, refusals }
