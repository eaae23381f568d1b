-- wrk: each review creates another object, so each needs an event of its own.
local file = assert(io.open(os.getenv("RW_REVIEW"), "rb"))
local review = file:read("*a"):gsub('"operation":"UPDATE"', '"operation":"CREATE"')
file:close()
local before, after = review:match('^(.-"object":.-"name":")default(".*)$')
wrk.headers["Content-Type"] = "application/json"
local n = 0
function request()
  n = n + 1
  return wrk.format("POST", nil, nil, before .. "object-" .. n .. after)
end
