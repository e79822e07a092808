-- Asks the metasched daemon where a job should run, when sbatch hands it in. Lies beside slurm.conf, with hooks.conf,
-- rules.lua and job_numbers.lua beside it; or in a folder of its own, and a site's own job_submit.lua loads it in its
-- last line but one:
--
--   pcall(dofile, "/etc/slurm/metasched/job_submit.lua")
--   return slurm.SUCCESS
--
-- The site's function then comes first, and what it refuses is refused.
--
-- While this runs the controller holds its locks: everybody waits. So there is one deadline for all of it, no Slurm
-- command is called, nothing is run, and whatever goes wrong leaves the job as it was.

local HERE = (debug.getinfo(1, "S").source:match("^@(.*/)")) or "/etc/slurm/"

-- Slurm's words for "not set" and "no limit", for fields of 16 and of 32 bits; those of 64 bits are out of all ranges.
local UNLIMITED = 4294967295
local UNSET16, UNSET = { [65534] = true, [65535] = true }, { [4294967294] = true, [UNLIMITED] = true }
-- The bit by which Slurm notes --spread-job.
local SPREAD = 256
-- Answers longer than this, and script text beyond this, are ignored (bytes).
local MOST_ANSWER, MOST_SCRIPT = 262144, 65536
-- A folded node name may stand for this many nodes; a comment may name this many processors.
local MOST_NODES, MOST_PROCESSORS = 100000, 10000000
-- Slurm refuses a job with a longer comment, and no mark that is longer is read (bytes).
local MOST_COMMENT, MOST_MARK = 1024, 500
-- What leaves a job alone, wherever it stands in its comment.
local OFF = "metasched:off"
-- A node's name may have this many bytes, this many numbers in brackets, and this many digits in each.
local MOST_NAME, MOST_BRACKETS, MOST_DIGITS = 255, 4, 9

local function read_settings(path)
  local settings = { address = "127.0.0.1:8765", mark = "yes", partitions = "default" }
  local file = io.open(path, "r")
  if not file then return settings end
  for line in file:lines() do
    local key, value = line:match("^%s*([%a_]+)%s*=%s*(.-)%s*$")
    if key then settings[key] = value end
  end
  file:close()
  return settings
end

-- The number that a text holds, as all hooks and the daemon read one: Lua alone would read 0x10.
local function number(value)
  return tostring(value):match("^%s*[%d.eE+-]+%s*$") and tonumber(value)
end

local function read_rules(path)
  local file = io.open(path, "r")
  if not file then return {} end
  file:close()
  local ok, rules = pcall(dofile, path)
  if not ok or type(rules) ~= "table" then
    slurm.log_error("metasched: %s is not a list of rules: %s", path, tostring(rules))
    return {}
  end
  return rules
end

local function first_line(path)
  local file = path and io.open(path, "r")
  if not file then return nil end
  local line = file:read("*l")
  file:close()
  return line
end

-- What a site's own script has defined before it loaded this one.
local before_submit, before_modify = rawget(_G, "slurm_job_submit"), rawget(_G, "slurm_job_modify")

local settings = read_settings(HERE .. "hooks.conf")
local rules = read_rules(HERE .. "rules.lua")
math.randomseed(os.time())
-- Where hooks.conf sets no deadline above 0, and the longest that is taken from it (s).
local DEADLINE, LONGEST = 0.2, 2.0
local deadline_seconds = number(settings.deadline) or 0
deadline_seconds = deadline_seconds > 0 and math.min(deadline_seconds, LONGEST) or DEADLINE

local function given(value)
  value = tonumber(value)
  if value == nil or UNSET[value] then return nil end
  return value
end

-- The same for a field of 16 bits.
local function given16(value)
  value = given(value)
  if UNSET16[value or 0] then return nil end
  return value
end

-- What the job is ------------------------------------------------------------------------------------------------

local function sound(application, size)
  size = number(size)
  if type(application) ~= "string" or #application > 64 or not application:match("^[%w_.+-]+$") then return nil end
  if not size or size ~= size or size <= 0 or size == math.huge then return nil end
  return { application = application, size = size }
end

-- Words of the comment that the hook writes, and those of layout, clock and moving; all others are parameters.
local RESERVED = { app = true, n = true, p = true, placement = true }
-- They come with what their numbers must be; a wrong one would make the run another, but for those of moving.
local COUNT, CLOCK, ANY = "a whole number above 0", "MHz from 10 to 100000", "anything"
local LAYOUT = { processes_per_node = COUNT, threads = COUNT, frequency = CLOCK, checkpoint = ANY, done = ANY }

-- Whether the daemon reads something as a number that is none, or has no end.
local function endless(value)
  local word = value:lower():gsub("^[+-]", "")
  return word == "nan" or word == "inf" or word == "infinity" or math.abs(number(value) or 0) == math.huge
end

-- Whether a parameter of a rule can stand in the comment, and the daemon takes it and reads no other word in it.
local function parameter(name, value)
  return #name <= 64 and #value <= 64 and name:match("^[%w_.+-]+$") and value:match("^[%w_.+-]+$")
         and not RESERVED[name] and not LAYOUT[name] and not endless(value)
end

-- What a word of the comment other than the reserved ones must be; nil where it is that.
local function expected(key, value)
  local form, amount = LAYOUT[key], number(value)
  if form == ANY then return nil end
  if not form then
    local sound = #key <= 64 and #value > 0 and #value <= 64 and not endless(value)
    return not sound and "a number or a word, of at most 64 characters" or nil
  end
  local sound = amount and amount >= 1 and amount == math.floor(amount) and amount < math.huge
  if form == CLOCK then sound = amount and amount >= 10 and amount <= 100000 end
  return not sound and form or nil
end

-- What the comment says, and where it cannot be understood what is wrong with it, for the user.
local function marked(comment)
  local text = comment:match("metasched:([^%s]*)")
  if not text then return nil end
  local mark = text:match("^[%w_=.,+-]*")
  if #mark > MOST_MARK then
    return nil, string.format("the comment's mark is longer than %d characters", MOST_MARK)
  end
  if (text:byte(#mark + 1) or 0) > 127 then -- a letter, of which the daemon would read what comes before
    return nil, string.format("the comment says metasched:%s and then a character other than letters, digits and _=.,+-",
                              mark:sub(1, 80))
  end
  local words = {}
  local parameters, kept, count = {}, "", 0
  for key, value in mark:gmatch("([%w_.+-]+)=([^,]*)") do
    if words[key] and words[key] ~= value then
      return nil, string.format("%s=%s and %s=%s in the comment, expected one of them", key:sub(1, 64),
                                words[key]:sub(1, 64), key:sub(1, 64), value:sub(1, 64))
    end
    words[key] = value
    if not RESERVED[key] then
      local form = expected(key, value)
      if form then
        return nil, string.format("%s=%s in the comment, expected %s", key:sub(1, 64), value:sub(1, 64), form)
      end
      kept = kept .. "," .. key .. "=" .. value
      if not LAYOUT[key] and not parameters[key] then
        if count == 32 then return nil, "more than 32 parameters in the comment, expected at most 32" end
        parameters[key], count = value, count + 1
      end
    end
  end
  if not words.app then return nil, "the comment names no application, expected metasched:app=NAME,n=SIZE" end
  local job = sound(words.app, words.n)
  if not job then
    return nil, string.format("app=%s,n=%s in the comment, expected a name of at most 64 letters, digits and _.+- and " ..
                              "a size above 0", words.app:sub(1, 80), (words.n or ""):sub(1, 80))
  end
  for word in mark:gmatch("[^,]+") do
    if not word:find("=", 1, true) then -- such as 400 of n=1,400
      return nil, string.format("%s in the comment, expected words of the form NAME=VALUE", word:sub(1, 80))
    end
  end
  job.annotated, job.kept = true, kept
  job.per_node = tonumber((words.processes_per_node or ""):match("^%d%d?%d?%d?$"))
  job.clock = number(words.frequency)
  if count > 0 then job.parameters = parameters end
  if words.p then
    local low, high = words.p:match("^(%d+)-(%d+)$")
    job.least, job.most = tonumber(low or words.p), tonumber(high or words.p)
    if not job.least or job.least < 1 or job.most < job.least or job.most > MOST_PROCESSORS then
      return nil, string.format("p=%s in the comment, expected a number of processors, or a range such as 2-16",
                                words.p:sub(1, 80))
    end
  end
  return job
end

-- What a script or a command line is known by when its job has ended: the epilog and the daemon compute the same.
local function digest(text)
  local value = 0
  for i = 1, math.min(#text, MOST_SCRIPT) do value = (value * 257 + text:byte(i) + 1) % 17592186044399 end
  return #text > 0 and string.format("%x-%x", #text, value) or ""
end

-- The words of a job's command line: its script, and the arguments of that.
local function words_of(job_desc)
  local words, argv = {}, job_desc.argv or {}
  for i = 0, #argv + 1 do if argv[i] then words[#words + 1] = tostring(argv[i]) end end
  return words
end

local function command_of(job_desc)
  return table.concat(words_of(job_desc), " "):sub(1, MOST_SCRIPT)
end

-- A rule names an application and patterns of Lua for the job's name, script or command line. All of its patterns must
-- be found; the first that captures something yields the problem size.
local function ruled(job_desc)
  local texts = {}
  local function text(kind)
    if texts[kind] == nil then
      local value = ""
      if kind == "name" then value = job_desc.name or "" end
      if kind == "script" then value = (job_desc.script or ""):sub(1, MOST_SCRIPT) end
      if kind == "command" then value = command_of(job_desc) end
      texts[kind] = value
    end
    return texts[kind]
  end
  for _, rule in ipairs(rules) do
    local found, size = false, rule.size
    for _, kind in ipairs({ "name", "script", "command" }) do
      if rule[kind] then
        local from, _, captured = text(kind):find(rule[kind])
        if not from then found = false; break end
        found, size = true, size or captured
      end
    end
    local job = found and sound(rule.application, size)
    if job then
      job.least, job.most = given(rule.least), given(rule.most)
      -- What gave the size distinguishes this job from others of its user that were submitted with it.
      if rule.script then job.script = digest(job_desc.script or "") end
      if rule.command then job.command = digest(text("command")) end
      for name, pattern in pairs(rule.parameters or {}) do
        for _, kind in ipairs({ "command", "script", "name" }) do
          local value = rule[kind] and text(kind):match(pattern)
          if value and parameter(name, value) then
            job.parameters = job.parameters or {}
            job.parameters[name] = value
            job.kept = (job.kept or "") .. "," .. name .. "=" .. value
            break
          end
        end
      end
      return job
    end
  end
end

-- Where a job requests GPUs and other generic resources: by --gres, --gpus and --tres-per-task.
local RESOURCES = { "gres", "tres_per_node", "tres_per_job", "tres_per_task", "tres_per_socket" }

-- What a job requests in one of these fields; from 23.11 on they include processors.
local function requested(job_desc, field)
  local value = job_desc[field]
  if type(value) ~= "string" then return "" end
  return (("," .. value):gsub(",cpu[:=]%d+", ""):gsub("^,", ""))
end

-- The type of the GPUs that a job requests, empty where it names none; nil where it requests no GPU.
local function gpu_of(job_desc)
  local found
  for _, field in ipairs(RESOURCES) do
    for entry in requested(job_desc, field):gmatch("[^,]+") do
      local rest = entry:gsub("^gres[:/]", ""):match("^gpu(.*)$")
      if rest and (rest == "" or rest:match("^[:=]")) then
        local kind = rest:match("^[:=]([^:=]+)")
        found = kind and not kind:match("^%d+%a?$") and kind or found or ""
      end
    end
  end
  return found
end

-- What the user reads where the comment states other GPUs than the job requests.
local function contradiction(job, job_desc)
  local stated, kind = job.parameters and job.parameters.gpu, gpu_of(job_desc)
  if not stated or kind == "" or stated == kind or (stated == "none" and not kind) then return nil end
  if not kind then
    return string.format("the comment states gpu=%s and the job requests no GPU, which counts where Slurm manages GPUs",
                         stated)
  end
  return string.format("the comment states gpu=%s and the job requests gpu:%s, which counts", stated, kind:sub(1, 64))
end

-- Where a job says how its tasks lie within a node, or what a node must have that no placement counts.
local WITHIN_NODES = { "ntasks_per_socket", "ntasks_per_core", "ntasks_per_board", "boards_per_node",
                       "sockets_per_board", "sockets_per_node", "cores_per_socket", "threads_per_core" }

-- Whether a job says an option of sbatch, by its name or its letter, in its script or its environment: Slurm does not
-- show all options to this hook, and none of these on the command line.
local function says(job_desc, name, letter)
  local environment = job_desc.environment
  if environment and environment["SBATCH_" .. name:upper():gsub("-", "_")] then return true end
  for line in (job_desc.script or ""):sub(1, MOST_SCRIPT):gmatch("[^\n]+") do
    local options = line:match("^#SBATCH(.*)")
    -- From the first command on sbatch reads no more of them.
    if not options and line:find("^%s*[^%s#]") then return false end
    for word in (options or ""):gmatch("%S+") do
      if word:sub(1, 1) == "#" then break end
      local long = word:match("^%-%-([%w-]+)") or "" -- sbatch takes beginnings of names, too
      if #long > 2 and name:sub(1, #long) == long or letter and word:sub(1, 2) == "-" .. letter then return true end
    end
  end
  return false
end

-- Whether the processes of a job share processors.
local function overcommits(job_desc)
  local tasks, processors = given(job_desc.num_tasks), given(job_desc.min_cpus)
  return tonumber(job_desc.overcommit) == 1 or (tasks and processors and processors < tasks)
end

-- Jobs that are bound in a way that a placement could break are left alone.
local function bound(job_desc)
  for _, field in ipairs({ "req_nodes", "reservation", "array_inx", "dependency", "clusters", "prefer",
                           "batch_features" }) do
    local value = job_desc[field]
    if type(value) == "string" and value ~= "" then return field end
  end
  if (given(job_desc.req_switch) or 0) > 0 then return "req_switch" end
  if math.floor((tonumber(job_desc.bitflags) or 0) / SPREAD) % 2 == 1 then return "spread_job" end
  for _, field in ipairs(RESOURCES) do
    if requested(job_desc, field) ~= "" then return field end
  end
  if (given(job_desc.begin_time) or 0) > os.time() then return "begin_time" end
  if given(job_desc.priority) == 0 then return "held" end -- the loads of today say nothing of when it is released
  if given(job_desc.het_job_offset) then return "het_job" end
  if not job_desc.script or job_desc.script == "" then return "no script" end -- salloc, srun: no run of an application
  if (given16(job_desc.cpus_per_task) or 1) > 1 then return "cpus_per_task" end
  for _, field in ipairs(WITHIN_NODES) do
    if (given16(job_desc[field]) or 0) > 0 then return field end
  end
  if (given(job_desc.pn_min_tmp_disk) or 0) > 0 then return "pn_min_tmp_disk" end
  if (given16(job_desc.pn_min_cpus) or 1) > math.max(1, given16(job_desc.ntasks_per_node) or 1) then
    return "pn_min_cpus"
  end
  if given16(job_desc.contiguous) == 1 then return "contiguous" end
  if overcommits(job_desc) then return "overcommit" end
  if job_desc.features and not job_desc.features:match("^[%w_,.-]+$") then return "features" end
  -- It leaves processors of its nodes to the system; on as many nodes as without these, Slurm would refuse it.
  if says(job_desc, "core-spec", "S") or says(job_desc, "thread-spec") then return "core_spec" end
end

-- Who takes part: where hooks.conf names users, accounts, partitions or a share of the jobs, all of it must hold.

local function listed(name, value)
  if not settings[name] then return true end
  local names = "," .. settings[name]:gsub("%s", "") .. ","
  return value ~= nil and names:find("," .. value .. ",", 1, true) ~= nil
end

local function takes_part(job_desc, part_list, uid)
  local user = given(job_desc.user_id) or uid
  if not (listed("canary_users", job_desc.user_name) or listed("canary_users", string.format("%d", user))) then
    return false
  end
  if not listed("canary_accounts", job_desc.account or job_desc.default_account) then return false end
  local inside = not settings.canary_partitions
  for name, part in pairs(part_list) do
    local named = job_desc.partition
    local wanted = named and ("," .. named .. ","):find("," .. name .. ",", 1, true)
    if not named then wanted = part.flag_default == 1 end
    inside = inside or (wanted and listed("canary_partitions", name))
  end
  return inside and math.random() * 100 < (number(settings.canary_share or "100") or 0)
end

-- Asking ---------------------------------------------------------------------------------------------------------

local function connected(socket, left)
  local connection
  if settings.socket then
    connection = require("socket.unix")()
    connection:settimeout(left(), "t")
    assert(connection:connect(settings.socket))
  else
    local host, port = settings.address:match("^(.-):(%d+)$")
    connection = assert(socket.tcp())
    connection:settimeout(left(), "t")
    assert(connection:connect(host, tonumber(port)))
  end
  return connection
end

-- What the daemon answers: a table, or an error.
local function exchange(method, path, document, ends)
  local json, socket = require("cjson.safe"), require("socket")
  local body = document and json.encode(document) or ""
  local function left() return math.max(0.001, ends - socket.gettime()) end
  local connection = connected(socket, left)
  local function receive()
    local token = first_line(settings.token_file) -- it may be another by now
    local request = { method, " ", path, " HTTP/1.0\r\nHost: metasched\r\nContent-Type: application/json\r\n",
                      token and ("Authorization: Bearer " .. token .. "\r\n") or "",
                      "Content-Length: ", #body, "\r\n\r\n", body }
    connection:settimeout(left(), "t")
    assert(connection:send(table.concat(request)))
    local answer = ""
    while true do
      if socket.gettime() >= ends then error("no answer in time", 0) end
      -- "t": the time for the whole call, so that it does not begin again with each byte.
      connection:settimeout(left(), "t")
      local whole, problem, part = connection:receive(8192)
      answer = answer .. (whole or part or "")
      if #answer > MOST_ANSWER then error("the answer is too long", 0) end
      local _, header_end = answer:find("\r\n\r\n", 1, true)
      local length = header_end and tonumber(answer:sub(1, header_end):lower():match("\ncontent%-length: *(%d+)\r"))
      if problem == "closed" or (length and #answer >= header_end + length) then
        return answer, header_end
      end
      if problem then error(problem, 0) end
    end
  end
  local ok, answer, header_end = pcall(receive)
  connection:close()
  if not ok then error(answer, 0) end
  local status = answer:match("^HTTP/%d%.%d (%d+)")
  if status ~= "200" or not header_end then
    local why = answer:sub((header_end or #answer) + 1):match('^{"detail":"([^"]*)')
    error("the daemon answers " .. tostring(status) .. (why and ": " .. why or ""), 0)
  end
  local received = json.decode(answer:sub(header_end + 1))
  if type(received) ~= "table" then error("the answer is not JSON", 0) end
  return received
end

-- The daemon finds the outcome of a job that is not marked by its user, name and time of submission.
local function plain(name)
  return (name:sub(1, 255):gsub("[^\32-\126]", "?"))
end

-- The nodes that a folded name stands for, as a set, and how many they are: no more than so many. An error where it is
-- not understood in full, names a node twice, or is not unfolded in time.
local function unfold(folded, most, check)
  local names, count, position = {}, 0, 1
  local function add(prefix, rest)
    local before, inside, after = rest:match("^([%w._-]*)%[([%d,-]+)%](.*)$")
    if not before then
      local name = prefix .. rest
      if not rest:match("^[%w._-]*$") or name == "" then error("not a node name: " .. rest, 0) end
      if names[name] then error("a node is named twice: " .. name, 0) end
      count = count + 1
      if count > most then error("too many nodes", 0) end
      if count % 256 == 1 and check then check() end
      names[name] = true
      return
    end
    for range in inside:gmatch("[^,]+") do
      local low, high = range:match("^(%d+)-?(%d*)$")
      if not low or #low > MOST_DIGITS or #high > MOST_DIGITS then error("not a range: " .. range, 0) end
      if high == "" then high = low end
      if tonumber(high) < tonumber(low) then error("not a range: " .. range, 0) end
      if tonumber(high) - tonumber(low) >= most then error("too many nodes", 0) end
      for number = tonumber(low), tonumber(high) do
        add(prefix .. before .. string.format("%0" .. #low .. "d", number), after)
      end
    end
  end
  while position <= #folded do
    local depth, stop = 0, #folded + 1
    for i = position, #folded do
      local c = folded:sub(i, i)
      if c == "[" then depth = depth + 1 elseif c == "]" then depth = depth - 1 end
      if c == "," and depth == 0 then stop = i; break end
    end
    local name = folded:sub(position, stop - 1)
    local rest, brackets = name:gsub("%b[]", "")
    if #rest > MOST_NAME or brackets > MOST_BRACKETS then error("not a node name: " .. rest, 0) end
    add("", name)
    position = stop + 1
  end
  return names, count
end

-- Whether jobs may be submitted to a partition from the host that submits this one.
local function admits_host(part, job_desc)
  local hosts = part.allow_alloc_nodes
  if type(hosts) ~= "string" or hosts == "" or hosts:upper() == "ALL" then return true end
  return unfold(hosts, MOST_NODES)[job_desc.alloc_node or ""] == true
end

-- Names of the jobs whose problem sizes the daemon finds in numbers that they state. It is asked for them once in so
-- many seconds: all other jobs that say nothing ask it nothing, nor wait for it where it does not answer.
local FRESH = 60
local sized, sized_at = {}, nil

local function sized_names(ends)
  local now = os.time()
  if not sized_at or now < sized_at or now - sized_at >= FRESH then
    sized, sized_at = {}, now
    local names = exchange("GET", "/v1/problem-sizes", nil, ends).names
    for _, name in ipairs(type(names) == "table" and names or {}) do sized[name] = true end
  end
  return sized
end

-- What a job is by the numbers in its name, its arguments and its script: the daemon decides, as when it has ended.
local function stated(job_desc, ends)
  local name = plain(job_desc.name or "")
  if not sized_names(ends)[(name:gsub("%d+", "#"))] then return nil end
  local numbers, script = dofile(HERE .. "job_numbers.lua"), job_desc.script or ""
  local wrapped = numbers.wrapped(script)
  local line = wrapped or table.concat(words_of(job_desc), " ", 2)
  local asked = { name = name, arguments = numbers.in_arguments(line), script = numbers.in_script(script) }
  local found = exchange("POST", "/v1/problem-sizes", asked, ends)
  local job = sound(found.application, found.problem_size)
  -- Jobs of the same name that were submitted with it may state other numbers.
  if job then job.script, job.command = digest(script), not wrapped and digest(command_of(job_desc)) or nil end
  return job
end

-- Clocks (kHz) that an option can name; what Slurm calls low or highm1 stands above them.
local SLOWEST, FASTEST = 10000, 100000000

-- The clock (MHz) that a job says for itself, in its comment or by an option; 0 where it chooses one that is not known
-- before it runs, as with a range or a governor; nil where it leaves the clock to others.
local function own_clock(job, job_desc)
  if job.clock then return job.clock end
  local least, most, governor = given(job_desc.cpu_freq_min), given(job_desc.cpu_freq_max), given(job_desc.cpu_freq_gov)
  if (least or 0) == 0 and (most or 0) == 0 and (governor or 0) == 0 then return nil end
  local one = most and (governor or 0) == 0 and (least or most) == most and most >= SLOWEST and most <= FASTEST
  return one and most / 1000 or 0
end

local function question(job, job_desc, part_list, uid)
  local asked = { application = job.application, problem_size = job.size, scheduler = settings.cluster,
                  user = string.format("%d", given(job_desc.user_id) or uid), name = plain(job_desc.name or ""),
                  script = job.script, command = job.command, annotated = job.annotated,
                  asked_at = require("socket").gettime(), -- by the clock that dates the submission
                  -- All memory of its nodes, and every job there has some.
                  exclusive = job_desc.shared == 0 or given(job_desc.min_mem_per_node) == 0 or nil,
                  parameters = job.parameters,
                  qos = job_desc.qos or job_desc.default_qos, login = job_desc.user_name,
                  account = job_desc.account or job_desc.default_account }
  local clock = own_clock(job, job_desc)
  if clock == 0 then asked.keeps_clock = true else asked.frequency = clock end
  local tasks, nodes = given(job_desc.num_tasks), given(job_desc.min_nodes)
  local per_node = given16(job_desc.ntasks_per_node)
  if per_node == 0 then per_node = nil end
  if job.least and job.most then
    asked.min_processors, asked.max_processors = math.max(job.least, 1), math.max(job.most, job.least, 1)
  else
    asked.processors = { tasks or (nodes or 1) * (per_node or 1) }
    if nodes and (nodes > 1 or given(job_desc.max_nodes) == 1) then
      asked.per_node = math.ceil(asked.processors[1] / nodes)
    end
  end
  asked.per_node = per_node or asked.per_node
  -- Where the job says how many processes a node gets, that is not to be chosen.
  asked.processes_per_node = job.per_node or asked.per_node
  local partitions, named = {}, job_desc.partition
  for name, part in pairs(part_list) do
    -- A job that names no partition stays in the default one, unless the site lets it go to any.
    local wanted = named and ("," .. named .. ","):find("," .. name .. ",", 1, true)
    if not named then wanted = settings.partitions == "any" or part.flag_default == 1 end
    local up = part.state_up == nil or part.state_up % 2 == 1
    if wanted and up and admits_host(part, job_desc) then partitions[#partitions + 1] = name end
  end
  if #partitions == 0 then error("no partition is open to the job", 0) end
  table.sort(partitions)
  asked.partitions = partitions
  local minutes = given(job_desc.time_limit)
  if minutes and minutes > 0 then asked.time_limit = 60 * minutes end
  local memory = given(job_desc.min_mem_per_node)
  if memory and memory > 0 and memory < 2 ^ 40 then asked.memory = memory end
  local share = given(job_desc.min_mem_per_cpu)
  if share and share > 0 and share < 2 ^ 40 then asked.memory_per_processor = share end
  if job_desc.features then
    asked.features = {}
    for feature in job_desc.features:gmatch("[^,]+") do asked.features[#asked.features + 1] = feature end
  end
  if job_desc.exc_nodes then asked.exclude = job_desc.exc_nodes end
  return asked
end

-- Believing ------------------------------------------------------------------------------------------------------

local unfolded = {}
local function nodes_of(part)
  local known = unfolded[part.name]
  if not known or known.folded ~= part.nodes then
    known = { folded = part.nodes, names = (unfold(part.nodes or "", MOST_NODES)) }
    unfolded[part.name] = known
  end
  return known.names
end

local function whole(value)
  return type(value) == "number" and value >= 1 and value == math.floor(value) and value < 10000000
end

-- Everything in the answer is checked against what the job may have before anything is set.
local function checked(answer, asked, job_desc, part_list, ends)
  local open = {}
  for _, name in ipairs(asked.partitions) do open[name] = part_list[name] end
  local part = type(answer.partition) == "string" and open[answer.partition]
  if not part then error("the answer names an unknown partition", 0) end
  -- Of near ties Slurm takes the first that has room; the job may run as long as all of them allow.
  local several, longest = type(answer.partitions) == "table" and answer.partitions or {}, given(part.max_time)
  for _, name in ipairs(several) do
    if type(name) ~= "string" or not open[name] then error("the answer names an unknown partition", 0) end
    local most = given(open[name].max_time)
    if most and (not longest or most < longest) then longest = most end
  end
  if type(answer.nodes) ~= "string" or #answer.nodes > 65536 then error("the answer names no nodes", 0) end
  if not whole(answer.node_count) or answer.node_count > MOST_NODES then
    error("the answer does not count its nodes", 0)
  end
  local fewest, most = given(job_desc.min_nodes) or 1, given(job_desc.max_nodes) or MOST_NODES
  if answer.node_count < fewest or answer.node_count > most then
    error("the best placement has another number of nodes than the job asks for", 0)
  end
  local socket = require("socket")
  local names, count = unfold(answer.nodes, answer.node_count, function()
    if socket.gettime() >= ends then error("the answer was not read in time", 0) end
  end)
  local here = nodes_of(part)
  for name in pairs(names) do
    if not here[name] then error("the answer names an unknown node", 0) end
  end
  if answer.node_count ~= count then error("the answer miscounts its nodes", 0) end
  local count_asked = asked.processors and asked.processors[1]
  local least, most = count_asked or asked.min_processors, count_asked or asked.max_processors
  if not whole(answer.processors) or answer.processors < least or answer.processors > most then
    error("the answer gives another number of processors than asked for", 0)
  end
  if type(answer.id) ~= "string" or not answer.id:match("^%x+$") or #answer.id > 32 then
    error("the answer has no id", 0)
  end
  local limit = type(answer.time_limit) == "number" and answer.time_limit > 0 and math.ceil(answer.time_limit / 60)
  return {
    partition = #several > 1 and table.concat(several, ",") or answer.partition, longest = longest, names = names,
    limit = limit or nil, clock = whole(answer.frequency) and answer.frequency,
  }
end

local function features_of(prefer)
  return type(prefer) == "string" and prefer:match("^[%w_.-]+$")
end

-- Changing the job -----------------------------------------------------------------------------------------------

-- A comment with this mark in place of its own, if it has one.
local function with_mark(comment, word)
  local from, to = comment:find("metasched:[%w_=.,+-]*")
  if from then return comment:sub(1, from - 1) .. word .. comment:sub(to + 1) end
  return comment == "" and word or (comment .. " " .. word)
end

-- Whether the comment notes the placement, by which the daemon releases a job from its nodes, and the clock (MHz).
local function mark(job_desc, job, answer, clock)
  -- As many digits as the question had.
  local word = string.format("metasched:app=%s,n=%.14g,p=%d,placement=%s%s%s", job.application, job.size,
                             answer.processors, answer.id, job.kept or "",
                             clock and not job.clock and string.format(",frequency=%.14g", clock) or "")
  local comment = with_mark(job_desc.comment or "", word)
  -- Where there is no room for the mark the outcome is found by the submission, as with mark = no.
  if #comment > MOST_COMMENT or #word > #"metasched:" + MOST_MARK then return false end
  job_desc.comment = comment
  return true
end

-- The clock (MHz) of the job, set to that of the answer where the job has none of its own; nil where it is not known.
local function clocked(job_desc, asked, sure)
  if asked.keeps_clock or asked.frequency then return asked.frequency end
  if sure.clock then job_desc.cpu_freq_min, job_desc.cpu_freq_max = 1000 * sure.clock, 1000 * sure.clock end
  return sure.clock or nil
end

local function place(job_desc, asked, answer, sure, noted)
  local own = given(job_desc.time_limit)
  local limit = sure.limit
  -- Slurm refuses a job with a limit below the least that it asks for, or above the partition's.
  if limit then limit = math.max(limit, given(job_desc.time_min) or 0) end
  if limit and own then limit = math.min(limit, own) end
  if limit and sure.longest then limit = math.min(limit, sure.longest) end
  job_desc.partition = sure.partition
  -- A job that could not be released would wait for its nodes without end.
  local steer = answer.steer == "nodes" and not noted and "features" or answer.steer
  if steer == "nodes" then
    job_desc.req_nodes = answer.nodes
    -- The limit follows from the prediction for these nodes; on others the job might be killed by it.
    if limit and limit >= 1 then job_desc.time_limit = limit end
  end
  if steer == "features" and features_of(answer.prefer) then job_desc.prefer = answer.prefer end
  if not (asked.processors and given(job_desc.num_tasks)) then job_desc.num_tasks = answer.processors end
  job_desc.min_nodes, job_desc.max_nodes = answer.node_count, answer.node_count
end

-- The file whose presence stops all hooks, the daemon being up or not.
local function switched_off()
  local file = io.open(settings.off or (HERE .. "metasched.off"), "r")
  if file then file:close() end
  return file ~= nil
end

local function one_line(text)
  return (tostring(text):gsub("[%c]", " "):sub(1, 300))
end

local function tell(text) slurm.log_user("%s", "metasched: " .. one_line(text)) end

local function advise(job_desc, part_list, uid)
  local comment = job_desc.comment or ""
  if comment:find(OFF, 1, true) or switched_off() then return nil end
  local job, wrong = marked(comment)
  if wrong then return "left alone: " .. wrong end
  job = job or ruled(job_desc)
  if not takes_part(job_desc, part_list, uid) then return nil end
  local doubt = job and contradiction(job, job_desc)
  if doubt then tell(doubt) end
  if bound(job_desc) then return nil end
  local ends = require("socket").gettime() + deadline_seconds
  job = job or stated(job_desc, ends)
  if not job then return nil end
  local asked = question(job, job_desc, part_list, uid)
  local answer = exchange("POST", "/v1/placements", asked, ends)
  if answer.placed ~= true then return answer.mode ~= "shadow" and answer.message or nil end
  local sure = checked(answer, asked, job_desc, part_list, ends)
  -- Where the daemon does not act nothing is changed, the comment neither: it finds the outcome by the submission.
  if answer.mode ~= "act" then return answer.mode ~= "shadow" and answer.message or nil end
  local clock = clocked(job_desc, asked, sure)
  -- At a clock that is not known the job may take longer than was predicted. One that wants no limit has none, and one
  -- that is sent a signal some time before its limit would get that too early.
  local own_limit = tonumber(job_desc.time_limit) == UNLIMITED or says(job_desc, "signal")
  if asked.keeps_clock or own_limit then sure.limit = nil end
  local noted = settings.mark == "yes" and mark(job_desc, job, answer, clock)
  place(job_desc, asked, answer, sure, noted)
  return answer.message
end

function slurm_job_submit(job_desc, part_list, submit_uid)
  if before_submit then
    local status = before_submit(job_desc, part_list, submit_uid)
    if status ~= slurm.SUCCESS then return status end
  end
  local ok, message = pcall(advise, job_desc, part_list, submit_uid)
  if not ok then
    slurm.log_info("metasched: job unchanged: %s", one_line(message))
  elseif type(message) == "string" then
    tell(message)
  end
  return slurm.SUCCESS
end

-- A comment that replaces one with a placement notes it too: the daemon could not release the job from its nodes, nor
-- find its outcome. One that says off goes on saying that, and the job can still be released.
local function keep_mark(job_desc, job_rec)
  local before, comment = job_rec.comment or "", job_desc.comment
  local word = before:match(OFF .. ",placement=%x+") or before:match("metasched:[%w_=.,+-]+") or ""
  local placement = word:match(",placement=%x+")
  if not comment or not placement or switched_off() then return end
  local from, to = comment:find(OFF, 1, true)
  if from then
    if comment:find(",placement=", to, true) then return end
    comment = comment:sub(1, to) .. placement .. comment:sub(to + 1)
    job_desc.comment = #comment <= MOST_COMMENT and comment or OFF .. placement
    return
  end
  local new = comment:match("metasched:[%w_=.,+-]*") or ""
  if new:find(",placement=", 1, true) then return end
  if marked(comment) then word = new .. placement end
  comment = with_mark(comment, word)
  if #comment > MOST_COMMENT or #word > #"metasched:" + MOST_MARK then
    slurm.log_info("metasched: a new comment would leave no room for the placement of the job, which keeps the old one")
    comment = before
  end
  job_desc.comment = comment
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  local status = before_modify and before_modify(job_desc, job_rec, part_list, modify_uid) or slurm.SUCCESS
  if status ~= slurm.SUCCESS then return status end
  local ok, message = pcall(keep_mark, job_desc, job_rec)
  if not ok then slurm.log_info("metasched: comment unchanged: %s", one_line(message)) end
  return slurm.SUCCESS
end

return slurm.SUCCESS
