-- The numbers in the arguments and the script of a job, each with its option, variable or position: all of them that is
-- sent. The daemon and the epilog find the same. What users write is bounded, and nothing of it is expanded or run.

-- Characters of arguments, of a script, of a word and of what is found; words of a command; numbers that are kept.
local LONGEST_LINE, LONGEST_SCRIPT, LONGEST_WORD, LONGEST_TEXT = 10000, 65536, 200, 1000
local MOST_WORDS, MOST_NUMBERS = 100, 16
-- Digits of a number, characters of the name of an option, and numbers in one place or positions of words.
local MOST_DIGITS, LONGEST_NAME, MOST_ALIKE = 12, 40, 99
local NAME = "%a[%w_%-]*"
-- Options whose numbers are nobody's business: what their names hold, and what is a part of them between - and _.
local PRIVATE = { "pass", "secret", "token", "key", "cred", "login", "phone", "mail" }
local PRIVATE_PARTS = { "pin", "pw", "pwd" }
-- sbatch puts this before the command of --wrap.
local WRAPPED = "\n# This script was created by sbatch --wrap.\n"

-- Texts are counted in characters where they are counted: each that is not ASCII stands as one byte.
local function characters(text, most)
  return (text:sub(1, 4 * most + 4):gsub("[\194-\244][\128-\191]+", "?"))
end

-- Whether a word is written as a number.
local function shaped(word)
  local digits, rest = word:match("^(%d+)(.*)$")
  local fraction, power = (rest or ""):match("^%.(%d*)(.*)$")
  power = power or rest
  return digits and #digits <= MOST_DIGITS and #(fraction or "") <= MOST_DIGITS
         and (power == "" or power:match("^[eE][+-]?%d%d?$"))
end

-- A number above 0 in its shortest form; nil where a word is none.
local function plain(word)
  local value = shaped(word) and tonumber(word)
  if not value or value <= 0 or value >= 10 ^ MOST_DIGITS then return nil end
  local shown = string.format("%.12g", value)
  return #shown <= MOST_DIGITS and shown or nil
end

-- The numbers of a word: it is one itself, or holds some in the name of a file or in a form such as 400x200.
local function numbers_in(word, inside)
  local number = plain(word)
  if number then return { number } end
  local unit = word:match("^[%d.]+([%a%%]+)$")
  local time = word:find(":", 1, true) and word:match("^[%d:.%-]*$")
  if not inside or word:sub(1, 1) == "-" or (unit and #unit <= 3) or time or shaped(word) then return {} end
  local found = {}
  for digits in word:match("[^/]*$"):gmatch("%d+") do found[#found + 1] = plain(digits) end
  return found
end

local function private(place)
  local name = place:gsub("=", "-"):lower()
  for _, part in ipairs(PRIVATE) do
    if name:find(part, 1, true) then return true end
  end
  for _, part in ipairs(PRIVATE_PARTS) do
    if ("-" .. name .. "-"):find("[-_]" .. part .. "[-_]") then return true end
  end
  return false
end

-- The place and the value of an option or a variable with its value in the same word.
local function given(word)
  local dashes, name, value = word:match("^(%-?%-?)(" .. NAME .. ")=(.+)$")
  if name and #name <= LONGEST_NAME then return dashes == "" and name .. "=" or dashes .. name, value end
  return word:match("^(%-%a)(%d.*)$")
end

-- Adds the places of numbers and the numbers of a command to those that were found before it.
local function add(found, words, first, inside, prefix)
  local option
  for index = 1, math.min(#words, MOST_WORDS) do
    local word, position = words[index], index - 1 + first
    local place, value = given(word)
    local name = not place and word:match("^%-%-?(" .. NAME .. ")$")
    if name and #name <= LONGEST_NAME then
      option = word
    else
      if not place and (option or position <= MOST_ALIKE) then place, value = option or "$" .. position, word end
      option = nil
      if place and #word <= LONGEST_WORD and not private(place) then
        for _, number in ipairs(numbers_in(value, inside)) do
          local count = (found[place] or 0) + 1
          found[place] = count
          if count <= MOST_ALIKE then
            found[#found + 1] = prefix .. place .. (count > 1 and "." .. count or "") .. "=" .. number
          end
        end
      end
    end
  end
end

-- The first or the last numbers as a text.
local function text_of(found, last)
  local first = last and math.max(#found - MOST_NUMBERS, 0) + 1 or 1
  local cells = {}
  for index = first, math.min(#found, first + MOST_NUMBERS - 1) do cells[#cells + 1] = found[index] end
  while #table.concat(cells, " ") > LONGEST_TEXT do cells[#cells] = nil end
  return table.concat(cells, " ")
end

-- The words of a line as a shell would have split it, without the rest of those that are too long; nil where a quote
-- does not end.
local function unquoted(line)
  local words, word, quote, escaped = {}, nil, nil, false
  local function more(text)
    word = word or ""
    if #word <= LONGEST_WORD then word = word .. text end
  end
  for index = 1, #line do
    local c = line:sub(index, index)
    if escaped then
      if quote and c ~= quote and c ~= "\\" then more("\\") end
      more(c)
      escaped = false
    elseif c == "\\" and quote ~= "'" then
      escaped = true
    elseif quote then
      if c == quote then quote = nil else more(c) end
    elseif c == "'" or c == '"' then
      more("")
      quote = c
    elseif c:find("[ \t\r\n]") then
      if word then words[#words + 1] = word end
      word = nil
    else
      more(c)
    end
  end
  if quote or escaped then return nil end
  if word then words[#words + 1] = word end
  return words
end

local function words_of(line)
  line = characters(line, LONGEST_LINE)
  local cut = #line > LONGEST_LINE
  line = line:sub(1, LONGEST_LINE)
  local words = line:find("['\"\\]") and unquoted(line)
  if not words then
    words = {}
    for word in line:gmatch("%S+") do words[#words + 1] = word:gsub("^['\"]+", ""):gsub("['\"]+$", "") end
  end
  if cut then words[#words] = nil end
  return words
end

local function in_arguments(line)
  local found = {}
  add(found, words_of(line), 1, true, "")
  return text_of(found)
end

local function in_script(script)
  local text = characters(script, LONGEST_SCRIPT)
  if #text > LONGEST_SCRIPT then text = text:sub(1, LONGEST_SCRIPT):match("^(.*)\n") or "" end
  local found, code = {}, {}
  for line in (text:gsub("\\\n", " ") .. "\n"):gmatch("(.-)\n") do
    code[#code + 1] = line:sub(1, 1) == "#" and "" or line:sub(1, (line:find("%s#") or 0) - 1)
  end
  -- In two steps, so that a long row of digits is read once and not from each of its digits on.
  local bare = table.concat(code, "\n"):gsub("%f[%d]%d+%f[<>]", " "):gsub("[<>]+&?%d*", " ")
  for command in bare:gmatch("[^;|&\n]+") do
    local words = {}
    for word in command:gmatch("[^%s'\"`(){}]+") do
      words[#words + 1] = word
      if #words == MOST_WORDS then break end
    end
    add(found, words, 0, false, "script:")
  end
  return text_of(found, true)
end

-- The line of a command, after its program, that sbatch was given instead of a script; nil where there is none.
local function wrapped(script)
  local _, ends = script:find(WRAPPED, 1, true)
  return ends and script:sub(ends + 1):match("^%s*%S+(.*)$")
end

return { in_arguments = in_arguments, in_script = in_script, wrapped = wrapped }
