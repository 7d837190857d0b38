-- Move letters from state to state. ARGV: what to do, job, n, n * id (with `recover`: one number, of the last claim that counts)
-- Returns for each id: r it is requested, b it is being replayed, d it is gone, - nothing to do; for `recover` how many

local what, job, n = take(), take(), tonumber(take())
if what == 'recover' then
  local ids = call('ZRANGEBYSCORE', held(job), '(' .. take(), '+inf')
  for _, id in ipairs(ids) do request(id) end
  return #ids
end
local out = {}
for i = 1, n do
  local id = take()
  local l = call('HMGET', letter(id), 'state', 'job')
  out[i] = '-'
  if l[1] then
    local busy = l[1] == 'replaying'
    if what == 'settle' or (what == 'purge' and not busy) then
      drop(id)
      out[i] = 'd'
    elseif (what == 'request' and not busy) or (what == 'give_back' and busy and l[2] == job) then
      request(id)
      out[i] = 'r'
    elseif busy then
      out[i] = 'b'
    end
  end
end
return table.concat(out)
