# Prints for each public function that takes text the longest time that it stays on a normal
# scheduler at once, over hostile texts of the sizes up to which work may run there.
#
#     MIX_ENV=test bin/bench slices
#
# A scheduler should be free again within a millisecond. Needs a quiet machine: on a busy one the
# times include those of other programs.

alias Skillbook.{Cost, HostileTexts, TextFunctions}

sizes = [1_000, 4_000, 8_000, 64_000]
folder = Path.join(System.tmp_dir!(), "slices_#{System.pid()}")
File.mkdir_p!(folder)

texts =
  for {name, text} <- HostileTexts.all(),
      size <- sizes,
      do: {"#{name}, #{size} bytes", text.(size)}

# OTP 25 aborts now and then when it traces a process that indexes a document.
rows =
  for {{module, _}, _, _} = row <-
        folder |> TextFunctions.world(&Skillbook.start_link/1) |> TextFunctions.rows(),
      module != Skillbook.Vault,
      do: row

IO.puts(String.pad_leading("µs", 8) <> "  function, text")

for {{module, function}, what, call} <- rows do
  call.("a")

  {longest, name} =
    texts
    |> Enum.map(fn {name, text} -> {Cost.slice(fn -> call.(text) end), name, text} end)
    |> Enum.sort(:desc)
    |> Enum.take(12)
    # The machine may have been busy: the shortest of some more measurements counts.
    |> Enum.map(fn {first, name, text} ->
      {Enum.min([first | for(_ <- 1..20, do: Cost.slice(fn -> call.(text) end))]), name}
    end)
    |> Enum.max()

  what = if what == "", do: "", else: " (#{what})"

  IO.puts(
    String.pad_leading("#{longest}", 8) <> "  #{inspect(module)}.#{function}#{what}: #{name}"
  )
end

File.rm_rf!(folder)
