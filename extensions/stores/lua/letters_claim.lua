-- Take requested letters for one job alone. ARGV: spider, arguments, job, how many. Returns: number of the claim, ids

local spider, arguments, job, limit = take(), take(), take(), tonumber(take())
local ids = call('ZRANGE', wanted(spider, arguments), 0, limit - 1)
if #ids == 0 then return { 0, ids } end
local number = call('HINCRBY', K, 'claims', 1)
for _, id in ipairs(ids) do
  leave(id)
  call('HSET', letter(id), 'state', 'replaying', 'job', job, 'claim', number)
  call('ZADD', held(job), number, id)
end
call('SADD', JOBS, job)
return { number, ids }
