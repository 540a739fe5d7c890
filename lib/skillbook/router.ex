defmodule Skillbook.Router do
  @moduledoc """
  Finds the entry that a command calls.

  `get_skill` and `NAME --help` are answered here, without running anything. Hidden names are
  unknown.

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> view = Skillbook.View.all(catalog)
      iex> {:ok, routed} = Skillbook.Router.route(view, "tasks.search --query report")
      iex> {routed.name, routed.entry.kind, routed.command.flags}
      {"tasks.search", :command, %{"query" => "report"}}
      iex> {:help, text} = Skillbook.Router.route(view, "tasks.search --help")
      iex> text =~ "# tasks.search"
      true
      iex> {:error, error} = Skillbook.Router.route(view, "taks.search --query report")
      iex> hd(error.suggestions)
      "tasks.search"
  """

  alias Skillbook.Support.UntilError

  alias Skillbook.{
    Command,
    CommandError,
    Entry,
    Help,
    Native,
    RoutedCommand,
    UnknownSkillError,
    View
  }

  @doc """
  Parses a command and finds its entry.

  Returns `{:help, text}` for `get_skill` and `--help`. `get_skill` takes several paths and
  answers them in order.
  """
  @spec route(Skillbook.view_or_book(), String.t(), Skillbook.options()) ::
          {:ok, RoutedCommand.t()}
          | {:help, String.t()}
          | {:error, CommandError.t() | UnknownSkillError.t()}
  def route(view_or_book, line, options \\ []) do
    type = [line: {:text, line}]
    view = View.only_from(view_or_book, options, "Skillbook.Router.route/3", type)
    with {:help, text, _entries, _skills} <- find(view, line), do: {:help, text}
  end

  @typep fill :: (Command.t() -> {:ok, Command.t()} | {:error, Exception.t()})

  @doc false
  # Like `route/3`. An answer to `get_skill` or `--help` also has the entries whose texts it
  # holds, and the skills whose files it shows. `fill` replaces the placeholders of `get_skill`.
  @spec find(View.t(), String.t(), fill()) ::
          {:ok, RoutedCommand.t()}
          | {:help, String.t(), [Entry.t()], [Entry.t()]}
          | {:error, Exception.t()}
  def find(%View{ref: ref} = view, line, fill \\ &{:ok, &1}) do
    case Native.route(ref, line) do
      {:ok, entry, declaration, command} ->
        routed(view, entry, declaration, Command.new(command))

      {:get, command} ->
        with {:ok, command} <- fill.(Command.new(command)),
             do: help(view, separate(view, paths(command)))

      {:unknown, command} ->
        unknown(view, Command.new(command))

      {:error, error} ->
        {:error, error}
    end
  end

  defp routed(view, entry, _declaration, %Command{help: true}), do: help(view, [entry.name])

  defp routed(%View{ref: ref} = view, entry, :long, command),
    do: routed(view, entry, Native.view_flags(ref, entry.name), command)

  defp routed(_view, entry, declaration, command),
    do:
      {:ok,
       %RoutedCommand{name: entry.name, entry: entry, declaration: declaration, command: command}}

  # `email --help` asks for a domain, which is not an entry.
  defp unknown(view, %Command{help: true, name: name}), do: help(view, [name])

  # `Command: email.send`, `run email.send` and `email send` have the name, but not as the first
  # word.
  defp unknown(view, %Command{name: name, args: args}) do
    error = View.unknown(view, name)
    words = Enum.take(args, 3)
    joined = for word <- Enum.take(words, 1), do: "#{name}.#{word}"

    case Enum.find_value(joined ++ words, &entry_name(view, &1)) do
      nil ->
        {:error, error}

      name ->
        {:error,
         %{error | suggestions: Enum.take([name | List.delete(error.suggestions, name)], 3)}}
    end
  end

  defp entry_name(view, name) do
    with {:ok, entry} <- View.fetch(view, name), do: entry.name, else: (_ -> nil)
  end

  # Models that were trained on tool calls write the path as a flag: `get_skill --name email`.
  defp paths(%Command{args: [], flags: flags}) do
    flags |> Map.delete("help") |> Map.values() |> List.flatten() |> Enum.filter(&is_binary/1)
  end

  defp paths(%Command{args: args}), do: List.delete(args, "-h")

  # `get_skill : email`, `get_skill: email.send, email.search`. A name may hold a comma, so names
  # come first.
  defp separate(view, words) do
    for word <- words, word not in [":", "："], path <- parts(view, word), do: path
  end

  defp parts(view, word) do
    if String.contains?(word, ",") and match?({:error, _}, Help.find_exact(view, word)),
      do: String.split(word, ",", trim: true),
      else: [word]
  end

  defp each(paths, entries), do: paths |> Enum.flat_map(entries) |> Enum.uniq_by(& &1.name)

  defp help(view, []), do: help(view, [""])

  defp help(view, paths) do
    # A page that is asked for twice is answered once.
    with {:ok, found} <- find_paths(view, Enum.uniq(paths)) do
      {paths, texts} = Enum.unzip(found)

      {:help, Enum.join(texts, "\n\n---\n\n"), each(paths, &Help.entries(view, &1)),
       each(paths, &Help.skills(view, &1))}
    end
  end

  # Several words are several paths, if each of them is one. If not, they are a title.
  defp find_paths(view, [_, _ | _] = paths) do
    with {:error, _} <- UntilError.map(paths, &Help.find_exact(view, &1)),
         {:error, error} <- Help.find(view, Enum.join(paths, " ")) do
      if Map.get(error, :ambiguous),
        do: {:error, error},
        else: UntilError.map(paths, &Help.find(view, &1))
    else
      {:ok, found} -> {:ok, List.wrap(found)}
    end
  end

  defp find_paths(view, paths), do: UntilError.map(paths, &Help.find(view, &1))
end
