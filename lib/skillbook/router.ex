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

  alias Skillbook.{Command, CommandError, Help, Native, RoutedCommand, UnknownSkillError, View}

  # A NIF on a normal scheduler should be done within a millisecond.
  @dirty_above 64 * 1024

  @doc """
  Reads a command and finds its entry.

  `{:help, text}` is the answer to `get_skill` and `--help`. `get_skill` takes several paths and answers them in order.
  """
  @spec route(View.t(), String.t()) ::
          {:ok, RoutedCommand.t()} | {:help, String.t()} | {:error, CommandError.t() | UnknownSkillError.t()}
  def route(%View{ref: ref} = view, line) when is_binary(line) do
    routed =
      if byte_size(line) <= @dirty_above, do: Native.route(ref, line), else: Native.route_dirty(ref, line)

    case routed do
      {:ok, entry, %Command{help: false} = command} ->
        {:ok, %RoutedCommand{name: entry.name, entry: entry, command: command}}

      {:ok, entry, %Command{help: true}} ->
        help(view, [entry.name])

      {:get, command} ->
        help(view, separate(view, paths(command)))

      # `email --help` asks for a domain, which is no entry.
      {:unknown, %Command{help: true, name: name}} ->
        help(view, [name])

      {:unknown, command} ->
        {:error, unknown(view, command)}

      {:error, error} ->
        {:error, error}
    end
  end

  # `Command: email.send`, `run email.send`, `email send`: the name is there, but not as the first word.
  defp unknown(view, %Command{name: name, args: args}) do
    error = View.unknown(view, name)
    words = Enum.take(args, 3)
    joined = for word <- Enum.take(words, 1), do: "#{name}.#{word}"

    case Enum.find_value(joined ++ words, &found(view, &1)) do
      nil -> error
      meant -> %{error | suggestions: Enum.take([meant | List.delete(error.suggestions, meant)], 3)}
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

  defp help(view, []), do: answer(Help.top_level(view))
  defp help(view, [path]), do: answer(Help.get(view, path))

  defp help(view, paths) do
    texts =
      Enum.reduce_while(paths, [], fn path, texts ->
        case Help.get(view, path) do
          {:ok, text} -> {:cont, [text | texts]}
          {:error, error} -> {:halt, {:error, error}}
        end
      end)

    with texts when is_list(texts) <- texts, do: {:help, texts |> Enum.reverse() |> Enum.join("\n\n---\n\n")}
  end

  defp answer({:ok, text}), do: {:help, text}
  defp answer({:error, error}), do: {:error, error}
end
