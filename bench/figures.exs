# Writes docs/figures.md: the rows of the benches that have peers, each bench with a plot in
# docs/images, the machine and the date.
#
#     bin/postgres-for-tests run bin/bench figures [BENCH...]
#
# The default is run, store, vault and rows, in about 15 minutes. Without a PostgreSQL server in
# SKILLBOOK_POSTGRES it is run alone. A bench that is not run again keeps its section.

Code.require_file("plot.exs", __DIR__)

defmodule Bench.Figures do
  @moduledoc false

  import Bench.Plot, only: [at: 1, escape: 1]

  @root Path.expand("..", __DIR__)
  @page Path.join(@root, "docs/figures.md")
  @titles %{
    "run" => "Catalog, commands and search",
    "store" => "Stored entries",
    "vault" => "Vaults",
    "rows" => "Commands over many rows"
  }
  @order ~w(run store vault rows)

  @head """
  # Figures

  The benches of this repository measure Skillbook beside the usual alternative, in the same
  run. `bin/bench figures` makes this page. Times differ between machines by a factor of two and
  more, so compare the columns of a row. A bar to the right of 1 says how many times faster
  Skillbook is, one to the left how many times slower.
  """

  def main([]) do
    if System.get_env("SKILLBOOK_POSTGRES", "") == "", do: main(["run"]), else: main(@order)
  end

  def main(names) do
    case names -- @order do
      [] ->
        for name <- names, do: write(name, section(name))
        IO.puts("wrote #{Path.relative_to_cwd(@page)}")

      [unknown | _] ->
        IO.puts(:stderr, "expected benches of #{Enum.join(@order, ", ")}, got: #{unknown}")
        System.halt(2)
    end
  end

  # After each bench, so that one that fails costs only its own section.
  defp write(name, section) do
    sections = Map.put(kept(), name, section)
    texts = for name <- @order, text = sections[name], do: text
    File.write!(@page, Enum.join([@head | texts], "\n"))
  end

  # The sections of the page, by their bench.
  defp kept do
    case File.read(@page) do
      {:ok, page} ->
        for text <- page |> String.split(~r/\n(?=## )/) |> tl(),
            [_, name] <- [Regex.run(~r{images/figures-(\w+)\.svg}, text)],
            into: %{},
            do: {name, String.trim_trailing(text) <> "\n"}

      {:error, :enoent} ->
        %{}
    end
  end

  defp section(name) do
    load = load()
    rows = rows(name)
    image = "images/figures-#{name}.svg"
    bars = for row <- rows, bar = bar(row), do: bar
    File.write!(Path.join([@root, "docs", image]), plot(bars))

    """
    ## #{@titles[name]}

    ![How many times faster Skillbook is, for each row of the table](#{image})

    | work | Skillbook | peer | times as fast | the peer |
    |---|---|---|---|---|
    #{Enum.map_join(rows, "\n", &line/1)}

    Measured on #{Date.utc_today()} by `bench/#{name}.exs`, with a load of #{load} at its start,
    on #{machine()}.
    """
  end

  # The bench appends its rows to a file.
  defp rows(name) do
    path = Path.join(System.tmp_dir!(), "skillbook-figures-#{System.pid()}")

    try do
      {_, 0} =
        System.cmd("mix", ["run", Path.join(__DIR__, "#{name}.exs")],
          env: [{"SKILLBOOK_BENCH_ROWS", path}],
          into: IO.stream(:stdio, :line)
        )

      for line <- path |> File.read!() |> String.split("\n", trim: true),
          row = String.split(line, "\t"),
          hd(row) != "work",
          do: row
    after
      File.rm(path)
    end
  end

  defp line(row), do: "| #{Enum.map_join(row, " | ", &String.replace(&1, "|", "\\|"))} |"

  # Ratios of sizes are no speeds.
  defp bar([work, _ours, _theirs, ratio, peer]) do
    with false <- String.contains?(peer, "ratio:"),
         {number, "x"} when number > 0 <- Float.parse(ratio),
         do: {work, number},
         else: (_ -> nil)
  end

  @width 900
  @names 400
  @bar 20

  # Bars on a logarithmic axis, which begin at 1.
  defp plot(bars) do
    logarithms = [-1.0, 1.0 | for({_, ratio} <- bars, do: :math.log10(ratio))]
    {low, high} = {logarithms |> Enum.min() |> floor(), logarithms |> Enum.max() |> ceil()}
    x = fn log -> @names + (log - low) / (high - low) * (@width - @names - 60) end
    height = (length(bars) + 2) * @bar

    lines =
      for log <- low..high do
        label = if log < 0, do: "1/#{10 ** -log}", else: "#{10 ** log}"

        ~s(<line x1="#{at(x.(log))}" x2="#{at(x.(log))}" y1="0" y2="#{height - @bar}"/>) <>
          ~s(<text x="#{at(x.(log))}" y="#{height - 5}" text-anchor="middle">#{label}</text>)
      end

    shapes =
      for {{work, ratio}, index} <- Enum.with_index(bars) do
        {from, to} = Enum.min_max([x.(0), x.(:math.log10(ratio))])
        class = if ratio < 1, do: "slower", else: "faster"
        top = index * @bar + 4

        ~s(<text x="#{@names - 8}" y="#{top + 12}" text-anchor="end">#{escape(work)}</text>) <>
          ~s(<rect class="#{class}" x="#{at(from)}" y="#{top}" ) <>
          ~s(width="#{at(max(to - from, 1))}" height="#{@bar - 6}"/>) <>
          ~s(<text x="#{at(to + 4)}" y="#{top + 12}">#{ratio}</text>)
      end

    Bench.Plot.svg(@width, height, lines ++ shapes)
  end

  defp machine do
    model =
      with {:ok, text} <- File.read("/proc/cpuinfo"),
           [_, model] <- Regex.run(~r/^model name\s*: (.*)$/m, text),
           do: model,
           else: (_ -> to_string(:erlang.system_info(:system_architecture)))

    "#{System.schedulers_online()} processors (#{model}), Elixir #{System.version()}, " <>
      "OTP #{System.otp_release()}"
  end

  defp load do
    case File.read("/proc/loadavg") do
      {:ok, text} -> text |> String.split() |> hd()
      {:error, _} -> "unknown"
    end
  end
end

Bench.Figures.main(System.argv())
