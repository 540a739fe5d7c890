# Checks that reloads do not leak memory. Each round changes one of three files, reloads the
# catalog and reads the file through a new view. Prints the resident memory (VmRSS) at the start
# and each tenth:
#
#     bin/bench reloads [RELOADS, default 1000000]

alias Skillbook.{Catalog, View}

cycles = System.argv() |> List.first("1000000") |> String.to_integer()
folder = Path.join(System.tmp_dir!(), "skillbook_reloads_#{System.pid()}")
files = ["notes/save.md", "notes/find.md", "haiku.md"]
names = %{"notes/save.md" => "notes.save", "notes/find.md" => "notes.find", "haiku.md" => "haiku"}

write = fn file, number ->
  text =
    "---\nname: #{names[file]}\ndescription: Version #{number}\n---\n" <>
      "# #{names[file]}\n\nThe body #{number}.\n"

  File.write!(Path.join(folder, file), text, [:raw])
end

resident = fn ->
  [_, kilobytes] = Regex.run(~r/^VmRSS:\s+(\d+) kB$/m, File.read!("/proc/self/status"))
  String.to_integer(kilobytes)
end

print = fn number ->
  :erlang.garbage_collect()

  reloads = String.pad_leading(to_string(number), 9)
  IO.puts("#{reloads} reloads  #{String.pad_leading(to_string(resident.()), 8)} kB")
end

try do
  File.mkdir_p!(Path.join(folder, "notes"))
  Enum.each(files, &write.(&1, 0))
  {:ok, catalog} = Catalog.load([folder])

  reload = fn number ->
    file = Enum.at(files, rem(number, 3))
    name = names[file]
    write.(file, number)
    %{changed: [^name]} = Catalog.refresh(catalog, :all)
    view = View.all(catalog)
    description = "Version #{number}"
    {:ok, %{description: ^description}} = View.fetch(view, name)

    if rem(number, 100) == 0 do
      [_ | _] = Skillbook.search(view, "version")
      true = Skillbook.prompt(view) =~ View.fetch!(view, "haiku").description
    end
  end

  print.(0)
  tenth = max(div(cycles, 10), 1)

  for number <- 1..cycles do
    reload.(number)
    if rem(number, tenth) == 0, do: print.(number)
  end

  IO.puts("generation #{Catalog.generation(catalog)}, #{Catalog.count(catalog)} entries")
after
  File.rm_rf!(folder)
end
