# Measures the answers of the page for people: for each room, the median of 20 and the processor
# time of one, in books of 10,000 files and of 10,000 entries of the store, with usage of 2,000
# skills, 500 runs and 100 schedules. The processor time is that of the whole virtual machine, so
# it holds on a busy machine too. The first answer after a change of the book is beside them.
#
#     bin/bench page [ENTRIES, default 10000] [files | store]

Code.require_file("measure.exs", __DIR__)

defmodule Bench.Page do
  @moduledoc false

  alias Skillbook.{Book, Store, Web}
  alias Skillbook.Usage.Writer
  alias Skillbook.Web.Request

  @times 20
  @used 2_000
  @runs 500
  @scheduled 100

  def run(entries, kinds) do
    Logger.configure(level: :error)
    root = Path.join(System.tmp_dir!(), "skillbook_bench_page_#{System.pid()}")

    try do
      for kind <- kinds, do: measure(kind, entries, Path.join(root, kind))
    after
      File.rm_rf!(root)
    end
  end

  defp measure(kind, entries, root) do
    book = :"bench_page_#{kind}"
    folder = Path.join(root, "skills")
    files(folder, if(kind == "files", do: entries, else: 200))

    {:ok, pid} =
      Skillbook.start_link(
        name: book,
        sources: [],
        write_to: folder,
        store: Path.join(root, "book.db"),
        watch: false,
        profiles: [[id: "default", writes: :run]],
        schedules: [run_as: "default"],
        agent: [model: Skillbook.Model.Function.new(fn _messages, _options -> "Yes." end)]
      )

    view = Skillbook.view(book, "default")

    if kind == "store" do
      for n <- 1..entries do
        fields = %{name: "n#{n}", title: "Note #{n}", description: "Is note #{n}", content: "x"}
        {:ok, _} = Store.create(view, fields)
      end
    end

    name = if kind == "store", do: "n7", else: "notes.n7"
    usage(book, if(kind == "store", do: "n", else: "notes.n"))
    for _ <- 1..@runs, do: Skillbook.run(view, "```cmd\nwork.w1\n```")

    web = Web.new!(book: book, authenticate: :none, profile: "default")
    {:ok, web} = Web.listen(web, {:tcp, {127, 0, 0, 1}, 4004})
    IO.puts("\n#{entries} entries, #{kind}: milliseconds\n")
    IO.puts("| page | median | processor | after a change |\n|---|---|---|---|")

    for path <- paths(name) do
      call = fn -> 200 = Web.call(request(path), web).status end
      call.()
      before = :erlang.statistics(:runtime) |> elem(0)
      times = for _ <- 1..@times, do: elem(:timer.tc(call), 0)
      used = (:erlang.statistics(:runtime) |> elem(0)) - before
      File.write!(Path.join(folder, "changed.md"), page("changed", "#{System.unique_integer()}"))
      Skillbook.reload(book)
      {after_change, _} = :timer.tc(call)
      median = times |> Enum.sort() |> Enum.at(div(@times, 2))
      cells = [path, ms(median / 1000), ms(used / @times), ms(after_change / 1000)]
      IO.puts("| #{Enum.join(cells, " | ")} |")
    end

    Supervisor.stop(pid)
  end

  defp ms(number), do: :erlang.float_to_binary(number / 1, decimals: 1)

  defp paths(name) do
    ~w(/ /skills /skills?q=note+number /skills?page=100 /skills/#{name} /skills/work.w1 /new
       /new/file /import /chat /try /try/work.w1 /route?request=a+note /prompt /tools
       /explain?name=#{name} /runs /approvals /agents /conversations /usage /usage?days=30
       /connections /servers /diagnostics /status)
  end

  defp request(path) do
    [path | query] = String.split(path, "?")

    %Request{
      method: "GET",
      scheme: :http,
      host: "127.0.0.1:4004",
      path: String.split(path, "/", trim: true),
      query: Enum.join(query),
      headers: [],
      peer: {127, 0, 0, 1}
    }
  end

  defp files(folder, count) do
    for n <- 1..count do
      schedule = if n <= @scheduled, do: "schedule: \"#{rem(n, 60)} 8 * * *\"\n", else: ""
      write(folder, "notes/n#{n}.md", page("notes.n#{n}", "The text of note #{n}.", schedule))
    end

    write(folder, "work/w1.md", page("work.w1", "## Behavior\n\n```cmd\ntasks.search\n```"))
  end

  defp write(folder, path, text) do
    path = Path.join(folder, path)
    File.mkdir_p!(Path.dirname(path))
    File.write!(path, text)
  end

  defp page(name, text, more \\ "") do
    "---\nname: #{name}\ndescription: Is number #{name} of the bench\n#{more}---\n#{text}\n"
  end

  defp usage(book, prefix) do
    hour = div(System.os_time(:second), 3600)

    rows =
      for n <- 1..@used, event <- ["run", "failed"], event == "run" or rem(n, 100) == 0 do
        {{hour - rem(n, 24), "", "#{prefix}#{n}", "default", event}, n, 1_000}
      end

    :ok = Writer.store(Book.sql(Book.fetch!(book)), rows)
  end
end

{entries, kinds} =
  case System.argv() do
    [] -> {10_000, ["files", "store"]}
    [entries] -> {String.to_integer(entries), ["files", "store"]}
    [entries, kind] -> {String.to_integer(entries), [kind]}
  end

Bench.Page.run(entries, kinds)
