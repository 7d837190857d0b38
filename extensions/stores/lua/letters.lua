-- Dead letters of all workers. What the scripts on them share.
--
-- The rule they keep: one thing is one letter, and a letter is in exactly one state: dead, requested (in the set of its spider
-- and arguments) or replaying (in the set of the job that claimed it).
--
--   K              hash  schema, last (id), claims (number), requests (grows when something is requested), dropped
--   K:letter:<id>  hash  the letter's fields                K:things   hash  spider, kind, key -> id
--   K:last         zset  last_at -> id, as 16 digits        K:uids     zset  seconds -> uid of what was put
--   K:wanted:<spider and arguments>  zset  id -> id         K:held:<job>  zset  claim -> id
--   K:jobs         set   jobs with something in K:held      K:runs     hash  run -> JSON (written by its own process)

local K = KEYS[1]
local LAST, THINGS, UIDS, JOBS = K .. ':last', K .. ':things', K .. ':uids', K .. ':jobs'
local call = redis.call
local at = 0
local function take() at = at + 1; return ARGV[at] end
local function letter(id) return K .. ':letter:' .. id end
local function place(id) return string.format('%016d', tonumber(id)) end
local function wanted(spider, arguments) return K .. ':wanted:' .. spider .. '\t' .. arguments end
local function held(job) return K .. ':held:' .. job end

-- It leaves the set of its state.
local function leave(id)
  local l = call('HMGET', letter(id), 'state', 'spider', 'arguments', 'job')
  if l[1] == 'requested' then call('ZREM', wanted(l[2], l[3]), id)
  elseif l[1] == 'replaying' then
    call('ZREM', held(l[4]), id)
    if call('EXISTS', held(l[4])) == 0 then call('SREM', JOBS, l[4]) end
  end
  return l
end

local function request(id)
  local l = leave(id)
  call('HSET', letter(id), 'state', 'requested', 'job', '', 'claim', '')
  call('ZADD', wanted(l[2], l[3]), id, id)
  call('HINCRBY', K, 'requests', 1)
end

local function drop(id)
  if call('EXISTS', letter(id)) == 0 then return 0 end
  leave(id)
  local l = call('HMGET', letter(id), 'spider', 'kind', 'key')
  call('HDEL', THINGS, l[1] .. '\t' .. l[2] .. '\t' .. l[3])
  call('ZREM', LAST, place(id))
  call('DEL', letter(id))
  return 1
end
