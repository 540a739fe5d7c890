defmodule Skillbook.Prompt.BuiltinSections do
  @moduledoc false
  # The sections `:tasks` and `:memory` of a prompt. They run the commands of the same data
  # through the view, so a profile gets only the data that it could read itself.

  alias Skillbook.Handlers.Memory.Memory
  alias Skillbook.Handlers.Tasks.Task
  alias Skillbook.{Book, Entry, Executor, Result, Router}

  @tasks Skillbook.Handlers.Tasks.Search
  @memory Skillbook.Handlers.Memory.Search
  @max_tasks 20
  @max_memories 5
  # Words of the message in a search, and the letters that count of each.
  @max_words 30
  @max_word 40

  @doc "The open tasks of the profile, the most urgent first."
  @spec tasks(Skillbook.Prompt.Sections.context()) :: String.t() | nil
  def tasks(context) do
    with %{tasks: [_ | _] = tasks, total: total} <-
           data(context, @tasks, "tasks.search --limit #{@max_tasks}") do
      lines = Enum.map(tasks, &Task.line(&1, DateTime.to_date(context.now)))
      more = if total > length(tasks), do: ["#{total - length(tasks)} more"], else: []
      Enum.join(lines ++ more, "\n")
    else
      _ -> nil
    end
  end

  @doc "The memories of the profile that fit the message best."
  @spec memory(Skillbook.Prompt.Sections.context()) :: String.t() | nil
  def memory(context) do
    with words when words != "" <- words(context.message),
         line = ~s(memory.search --query "#{words}" --limit #{@max_memories}),
         %{memories: [_ | _] = memories} <- data(context, @memory, line) do
      Enum.map_join(memories, "\n", &Memory.text/1)
    else
      _ -> nil
    end
  end

  # A message has quotes, dashes and `OR` that are not meant as operators of a query.
  defp words(message) do
    ~r/[\p{L}\p{N}]+/u
    |> Regex.scan(String.slice(message, 0, @max_words * @max_word))
    |> Enum.take(@max_words)
    |> Enum.map_join(" ", fn [word] -> String.slice(word, 0, @max_word) end)
    |> String.downcase()
  end

  # Another handler of the same name has other data.
  defp data(%{view: view} = context, handler, line) do
    with {:ok, %{entry: entry} = routed} <- Router.route(view, line),
         {:ok, ^handler} <- Entry.fetch_handler(entry),
         options = [now: context.now, assigns: context.assigns],
         {:ok, %Result{data: data}} <-
           Executor.call(view, Book.find(view.book), routed, options) do
      data
    else
      _ -> nil
    end
  end
end
