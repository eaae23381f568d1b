-- wrk: the same review again and again; nothing that is watched changed, so it needs no event.
local file = assert(io.open(os.getenv("RW_REVIEW"), "rb"))
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = file:read("*a")
file:close()
-- A new connection for each review, as an API server with many writers makes them.
if os.getenv("RW_CLOSE") then wrk.headers["Connection"] = "close" end
