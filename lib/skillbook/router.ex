defmodule Skillbook.RoutedCommand do
  @moduledoc """
  A command and the entry that it calls.

  ## Fields

    * `:name` - the entry's name, also where the command used an alias
    * `:entry` - the `Skillbook.Entry`
    * `:declaration` - the `Skillbook.Declaration` by which its flags are read before it runs, or
      `nil`: its page declares none, or has neither a handler nor `strict: true`
    * `:command` - the `Skillbook.Command` as it was parsed
  """

  @type t :: %__MODULE__{
          name: String.t(),
          entry: Skillbook.Entry.t(),
          declaration: Skillbook.Declaration.t() | nil,
          command: Skillbook.Command.t()
        }

  @enforce_keys [:name, :entry, :command]
  defstruct [:name, :entry, :declaration, :command]
end

defmodule Skillbook.Router do
  @moduledoc """
  Finds what a command calls, in a view.

  `get_skill` in its forms and `NAME --help` are answered here and run nothing. A name that the view does not show is
  unknown in every way.

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load(["test/support/fixtures/skills"])
      iex> view = Skillbook.View.all(catalog)
      iex> {:ok, routed} = Skillbook.Router.route(view, "email.send --to bob@co.com")
      iex> {routed.name, routed.entry.kind, routed.command.flags}
      {"email.send", :command, %{"to" => "bob@co.com"}}
      iex> {:help, text} = Skillbook.Router.route(view, "haiku --help")
      iex> text
      "Write three lines of five, seven and five syllables."
      iex> {:error, error} = Skillbook.Router.route(view, "emial.send --to bob@co.com")
      iex> error.suggestions
      ["email.send"]
  """

  alias Skillbook.Support.Options

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
  Reads a command and finds its entry.

  `{:help, text}` is the answer to `get_skill` and `--help`. `get_skill` takes several paths and answers them in order.
  """
  @spec route(View.t(), String.t()) ::
          {:ok, RoutedCommand.t()}
          | {:help, String.t()}
          | {:error, CommandError.t() | UnknownSkillError.t()}
  def route(%View{} = view, line) when is_binary(line) do
    with {:help, text, _entries, _skills} <- find(view, line), do: {:help, text}
  end

  @doc false
  # As `route/2`, and says whose own texts the answer to `get_skill` or `--help` holds, and of which skills it shows files.
  # What is answered here has its placeholders filled by `fill`.
  @spec find(View.t(), String.t(), (Command.t() -> {:ok, Command.t()} | {:error, Exception.t()})) ::
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

  # `email --help` asks for a domain, which is no entry.
  defp unknown(view, %Command{help: true, name: name}), do: help(view, [name])

  # `Command: email.send`, `run email.send`, `email send`: the name is there, but not as the first word.
  defp unknown(view, %Command{name: name, args: args}) do
    error = View.unknown(view, name)
    words = Enum.take(args, 3)
    joined = for word <- Enum.take(words, 1), do: "#{name}.#{word}"

    case Enum.find_value(joined ++ words, &found(view, &1)) do
      nil ->
        {:error, error}

      meant ->
        {:error,
         %{error | suggestions: Enum.take([meant | List.delete(error.suggestions, meant)], 3)}}
    end
  end

  defp found(view, name) do
    with {:ok, entry} <- View.fetch(view, name), do: entry.name, else: (_ -> nil)
  end

  # Models that were trained on tool calls name the path: `get_skill --name email` or `get_skill {"name": "email"}`.
  defp paths(%Command{args: [], flags: flags}) do
    flags |> Map.delete("help") |> Map.values() |> List.flatten() |> Enum.filter(&is_binary/1)
  end

  defp paths(%Command{args: args}), do: List.delete(args, "-h")

  # `get_skill : email`, `get_skill: email.send, email.search`. A name may hold a comma, so names come first.
  defp separate(view, words) do
    for word <- words, word not in [":", "："], path <- parts(view, word), do: path
  end

  defp parts(view, word) do
    if String.contains?(word, ",") and match?({:error, _}, Help.get(view, word)),
      do: String.split(word, ",", trim: true),
      else: [word]
  end

  defp each(paths, entries), do: paths |> Enum.flat_map(entries) |> Enum.uniq_by(& &1.name)

  defp help(view, []), do: help(view, [""])

  defp help(view, paths) do
    with {:ok, texts} <- Options.each(paths, &Help.get(view, &1)) do
      {:help, Enum.join(texts, "\n\n---\n\n"), each(paths, &Help.entries(view, &1)),
       each(paths, &Help.skills(view, &1))}
    end
  end
end
