defmodule Skillbook.DurableRows do
  @moduledoc false
  # A scripted conversation whose commands write rows, and which can be killed at each of its
  # points: before and after each answer of the model, in each handler before and after its row,
  # and at each event. The points are counted in a process whose name is in the assigns.

  @behaviour Skillbook.Handler

  import ExUnit.Assertions

  alias Skillbook.{Book, Model, SQL}

  @doc "Starts to count the points of a run, which is killed at one of them; 0 for none."
  def points(name, kill_at) do
    {:ok, _pid} = Agent.start_link(fn -> {0, kill_at} end, name: name)
    name
  end

  @doc "Counts from 0 again."
  def reset(name, kill_at), do: Agent.update(name, fn _before -> {0, kill_at} end)

  @doc "How many points there were."
  def count(name), do: Agent.get(name, &elem(&1, 0))

  @doc "A point of the calling process, or of the first one for which it works."
  def point(nil), do: :ok

  def point(name) do
    process = List.last(Process.get(:"$callers", [self()]))

    case Agent.get_and_update(name, fn {count, at} -> {count + 1, {count + 1, at}} end) do
      count ->
        if count == Agent.get(name, &elem(&1, 1)) do
          Process.exit(process, :kill)
          Process.sleep(:infinity)
        end
    end
  end

  @impl true
  def execute(%{"name" => name} = flags, context) do
    point(context.assigns[:points])
    SQL.query!(context.sql, "insert into ran (name) values ($1)", [name])
    if flags["halt"], do: System.halt(1)
    point(context.assigns[:points])
    {:ok, "Ran #{name}."}
  end

  @doc "The pages, with this module as their handler."
  def pages do
    for {name, more} <- [
          {"x.add", []},
          {"x.twice", [{"idempotent", "true"}]},
          {"x.get", [{"effects", "read"}]}
        ],
        into: %{} do
      fields = [{"name", name}, {"description", "Does it"}, {"handler", inspect(__MODULE__)}]
      text = Enum.map_join(fields ++ more, "\n", fn {key, value} -> "#{key}: #{value}" end)
      {String.replace(name, ".", "/") <> ".md", "---\n#{text}\n---\n# #{name}\n"}
    end
  end

  @doc "The model of the script: two turns with commands, and an answer. It checks each request."
  def model(points, more \\ []) do
    Model.Function.new(fn messages, _options ->
      check(messages)
      point(points)
      text = Enum.map_join(messages, "\n", & &1.content)
      [_, name] = Regex.run(~r/Go (\w+)\./, text)
      turn = Enum.count(messages, &(&1.role == :assistant))
      if more[:tell] && turn == 2, do: send(more[:tell], {:asked, name, text})
      point(points)
      answer(turn, name, Keyword.get(more, :protocol, :blocks), more[:flags] || %{})
    end)
  end

  defp answer(turn, name, protocol, flags) do
    case lines(turn, name, flags) do
      [] ->
        "All done, #{name}."

      lines when protocol == :blocks ->
        "On it.\n\n```cmd\n#{Enum.map_join(lines, "\n", &line/1)}\n```"

      lines ->
        %{text: "On it.", tool_calls: Enum.map(lines, &call/1)}
    end
  end

  defp lines(0, name, flags),
    do: [{"x.add", "#{name}a", %{}}, {"x.get", "#{name}b", %{}}, {"x.add", "#{name}c", flags}]

  defp lines(1, name, _flags),
    do: [{"x.get", "#{name}d", %{}}, {"x.get", "#{name}e", %{}}, {"x.twice", "#{name}f", %{}}]

  defp lines(_turn, _name, _flags), do: []

  defp line({command, name, flags}),
    do:
      Enum.join(["#{command} --name #{name}" | for({flag, true} <- flags, do: "--#{flag}")], " ")

  defp call({command, name, flags}) do
    arguments = Map.merge(%{"name" => name}, flags)
    %{name: String.replace(command, ".", "__"), arguments: arguments}
  end

  # What vendors require: roles that alternate, and the results of calls directly after them.
  defp check([%{role: :system} | messages]) do
    assert %{role: :user} = hd(messages)
    check_next(messages)
  end

  defp check_next([%{role: :assistant, tool_calls: [_ | _] = calls} | rest]) do
    {results, rest} = Enum.split(rest, length(calls))
    assert Enum.map(results, &{&1.role, &1.id}) == Enum.map(calls, &{:tool, &1.id})
    check_next(rest)
  end

  defp check_next([%{role: role} | [%{role: next} | _] = rest]) do
    assert role != next
    check_next(rest)
  end

  defp check_next(_last), do: :ok

  @doc "Starts a run, and returns without waiting for its end."
  def run_later(book, input) do
    spawn(fn -> Skillbook.Agent.run(book, input, profile: "ann") end)
    :ok
  end

  @doc "Creates the table of the rows."
  def create(book) do
    SQL.query!(sql(book), "create table ran (name text not null)")
    :ok
  end

  @doc "How often each of the names ran that begin with one."
  def ran(book, name) do
    SQL.query!(sql(book), "select name from ran where name like $1", [name <> "_"]).rows
    |> Enum.map(fn [ran] -> String.replace_prefix(ran, name, "") end)
    |> Enum.frequencies()
  end

  defp sql(book), do: Book.sql(Book.fetch!(book))
end
