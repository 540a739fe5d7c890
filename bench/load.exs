# Runs a thousand concurrent conversations on one book. Handlers succeed, fail, crash, kill
# themselves, hang, and return too much text:
#
#     bin/bench load [CONVERSATIONS]
#
# Exits with an error if conversations are mixed up or resources leak; otherwise prints figures.

Code.require_file("../test/support/load.ex", __DIR__)
Logger.configure(level: :none)

conversations = System.argv() |> Enum.map(&String.to_integer/1) |> List.first(1000)
folder = Path.join(System.tmp_dir!(), "skillbook_load_#{System.unique_integer([:positive])}")

try do
  for {path, text} <- Skillbook.Load.pages() do
    path = Path.join(folder, path)
    File.mkdir_p!(Path.dirname(path))
    File.write!(path, text)
  end

  # Warm-up: the first run loads code.
  Skillbook.Load.run(folder, 10)
  figures = Skillbook.Load.run(folder, conversations)
  per_second = div(figures.commands * 1000, max(figures.milliseconds, 1))

  IO.puts(
    "#{figures.conversations} conversations, #{figures.commands} commands " <>
      "in #{figures.milliseconds} ms: #{per_second} per second"
  )

  for {outcome, count} <- Enum.sort_by(figures.results, &(-elem(&1, 1))),
      do: IO.puts("  #{outcome}: #{count}")

  IO.puts("  skills out of service: #{figures.out_of_service}")
  IO.puts("  stored long results: #{div(figures.kept_bytes, 1024)} KiB")
  IO.puts("  leaked: no process, no table, #{div(figures.left_memory, 1024)} KiB of memory")
after
  File.rm_rf!(folder)
end
