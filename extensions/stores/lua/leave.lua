-- A worker goes: what it has comes back. ARGV: worker, workers a domain, crashes that are too many, wipe if the last? was it a crash?
-- Returns: status, what, rows left, workers left

local w, most, max_crashes, wipe = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1'
local state, what = standing(w)
if state ~= 'ok' then return { state, what, '0', '0' } end
reclaim(w, most, max_crashes, ARGV[5] == '1')
local rows, workers = call('HLEN', K), call('ZCARD', WORKERS)
if wipe and rows == 0 and workers == 0 then
  call('DEL', K, F, JOB, WORKERS, DOMAINS, CLAIMS, DELAYED, CRASHED, LEARNED, HUNGRY, ORPHANS, LONE)
end
return { 'ok', '', tostring(rows), tostring(workers) }
