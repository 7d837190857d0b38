-- Enter a job as a new worker. ARGV: schema, name of the job if it is new, lease (ms), note on the worker
-- Returns: ok, worker, job, rows, other workers | shape, what is wrong | lost, what is missing

local schema, job, lease_ms, note = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local function kind(key) return call('TYPE', key)['ok'] end

local found = call('HGET', JOB, 'schema')
if not found then
  if kind(K) ~= 'none' then return { 'shape', K .. ' is a ' .. kind(K) .. ' that is not Sluice\'s' } end
  if kind(F) ~= 'none' then return { 'shape', F .. ' is a ' .. kind(F) .. ' that is not Sluice\'s' } end
  call('HSET', JOB, 'schema', schema, 'job', job, 'rows', 0, 'seen', 0, 'held', 0, 'workers', 0)
elseif found ~= schema then
  return { 'schema', found }
end
local state, what = standing(nil)
if state ~= 'ok' then return { state, what } end
local others = call('ZCOUNT', WORKERS, now_ms(), '+inf')
local w = tostring(call('HINCRBY', JOB, 'workers', 1))
call('ZADD', WORKERS, now_ms() + lease_ms, w)
call('HSET', worker_of(w), 'note', note)
return { 'ok', w, call('HGET', JOB, 'job'), tostring(call('HLEN', K)), tostring(others) }
