-- Put letters, each once. ARGV: set of all such keys, schema, seconds now, seconds to know uids for, most letters, arguments of this run,
--   n, n * (uid, row that it comes from, kind, spider, key, url, domain, reason, detail, attempts, status, exception,
--           first_at, last_at, payload)
-- Returns: letters that had to go for the new ones

call('SADD', take(), K)
call('HSETNX', K, 'schema', take())
local now, keep_s, most, arguments = tonumber(take()), tonumber(take()), tonumber(take()), take()
call('ZREMRANGEBYSCORE', UIDS, '-inf', now - keep_s)
for _ = 1, tonumber(take()) do
  local uid, from, kind, spider, key, url, domain = take(), take(), take(), take(), take(), take(), take()
  local reason, detail, attempts, status, exception = take(), take(), take(), take(), take()
  local first_at, last_at, payload = take(), take(), take()
  if call('ZADD', UIDS, 'NX', now, uid) == 1 then
    if kind == 'settled' then
      drop(from)
    else
      local thing = spider .. '\t' .. kind .. '\t' .. key
      local came_back = from ~= '' and call('EXISTS', letter(from)) == 1
      local id = came_back and from or call('HGET', THINGS, thing)
      if not id then
        id = tostring(call('HINCRBY', K, 'last', 1))
        call('HSET', THINGS, thing, id)
        call('HSET', letter(id), 'id', id, 'spider', spider, 'kind', kind, 'key', key, 'url', url, 'domain', domain,
          'attempts', 0, 'first_at', first_at, 'last_at', last_at, 'replays', 0, 'state', 'dead', 'job', '', 'claim', '',
          'arguments', arguments, 'payload', payload)
      end
      local was = call('HMGET', letter(id), 'first_at', 'last_at')
      if tonumber(was[1]) < tonumber(first_at) then first_at = was[1] end
      if tonumber(was[2]) > tonumber(last_at) then last_at = was[2] end
      call('HSET', letter(id), 'reason', reason, 'detail', detail, 'status', status, 'exception', exception,
        'first_at', first_at, 'last_at', last_at)
      call('HINCRBY', letter(id), 'attempts', attempts)
      call('ZADD', LAST, last_at, place(id))
      if came_back then
        leave(id)
        call('HSET', letter(id), 'state', 'dead', 'job', '', 'claim', '')
        call('HINCRBY', letter(id), 'replays', 1)
      end
    end
  end
end

-- The oldest go where there are too many; what is being replayed stays.
local surplus, dropped, from = call('ZCARD', LAST) - most, 0, 0
while dropped < surplus do
  local member = call('ZRANGE', LAST, from, from)[1]
  if not member then break end
  local id = string.match(member, '^0*(%d+)$')
  if call('HGET', letter(id), 'state') == 'replaying' then from = from + 1 else dropped = dropped + drop(id) end
end
if dropped > 0 then call('HINCRBY', K, 'dropped', dropped) end
return dropped
