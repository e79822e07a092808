-- How metasched recognises applications in jobs whose comment does not say: a list of rules, the first that fits counts.
--
-- Each names an application and gives patterns of Lua (https://www.lua.org/manual/5.1/manual.html#5.4.1) for the job's
-- name, its script or its command line. All of its patterns must be found. What a pattern captures in parentheses is the
-- problem size; `size` gives a fixed one. `least` and `most` let metasched choose the number of processors.
return {
  -- { application = "cg", script = "cg%.x +%-n +(%d+)" },
  -- { application = "fft", name = "^fft%-(%d+)$", least = 1, most = 32 },
  -- { application = "nightly", name = "^nightly$", size = 1 },
}
