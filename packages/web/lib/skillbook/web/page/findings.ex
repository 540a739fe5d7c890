defmodule Skillbook.Web.Page.Findings do
  @moduledoc false
  # The diagnostics that a caller may see: chosen, counted and cut into pages. Operators see those
  # of the tenants that their profile reads, others those of their view.
  #
  # The book keeps each list for its generation, so that a page costs as much as its own rows.

  alias Skillbook.Book.Cache
  alias Skillbook.MCP.Client
  alias Skillbook.Run.CircuitBreaker
  alias Skillbook.{Book, Catalog, Lint, Profile, View}

  @severities [:error, :warning, :info]

  @typedoc "A `Skillbook.Web.Caller`, or these fields of one."
  @type caller :: %{
          required(:operator?) => boolean(),
          required(:view) => View.t(),
          optional(any()) => any()
        }

  @typedoc """
  The diagnostics to choose: their severity and code, or all for `nil`; with advice; with the
  number of fixes for each file below a folder.
  """
  @type choice :: %{
          severity: atom() | nil,
          code: String.t() | nil,
          advice?: boolean(),
          folder: Path.t() | nil
        }

  @typedoc """
  The number of all, by severity and by code; those that are chosen, the errors first, as pages,
  each a term of `{diagnostic, name of its entry or nil}` in the format of
  `:erlang.term_to_binary/1`; the files that can be fixed, with their numbers of fixes.
  """
  @type t :: %{
          total: non_neg_integer(),
          severities: %{atom() => pos_integer()},
          codes: %{atom() => pos_integer()},
          pages: [binary()],
          fixable: [{Path.t(), pos_integer()}],
          more_fixable: non_neg_integer()
        }

  @doc "The severities, the worst first."
  @spec severities() :: [atom()]
  def severities, do: @severities

  @doc "Returns a list in pages of `size`, with at most `max_fixable` files to fix."
  @spec list(caller(), choice(), pos_integer(), non_neg_integer()) :: t()
  def list(caller, choice, size, max_fixable) do
    {view, state} = current(caller)
    running = running(caller, view)

    Cache.keep(view.book, {:diagnostics, state, running, choice, size, max_fixable}, fn ->
      make(view, running, choice, size, max_fixable)
    end)
  end

  # The view whose diagnostics a caller sees, and its state. The generation of a view does not
  # count findings about handlers, and about files that are no entries; that of the catalog does.
  # It comes first, so that a list may be newer than its key, but never older.
  defp current(%{view: %{book: book}} = caller) do
    generation = Catalog.generation(Book.fetch!(book).catalog)
    profile = caller.view.profile

    view =
      if caller.operator?, do: View.all_of(book, profile.tenant), else: View.of(book, profile)

    {view, {View.state(view), generation}}
  end

  @doc "A value that differs if the diagnostics of a caller have changed."
  @spec hash(caller()) :: term()
  def hash(caller) do
    {view, state} = current(caller)
    # Each stream of events asks after each change.
    hash = fn -> :erlang.phash2(View.diagnostics(view), 4_294_967_296) end
    {Cache.keep(view.book, {:diagnostics_hash, state}, hash), running(caller, view)}
  end

  # Those that are in no generation.
  defp running(%{operator?: true}, view) do
    %{sources: sources} = book = Book.fetch!(view.book)
    sources = Enum.filter(sources, &Profile.reads?(view.profile, &1.tenant))
    Client.diagnostics(%{book | sources: sources}) ++ CircuitBreaker.diagnostics(book, view)
  end

  defp running(_caller, _view), do: []

  defp make(view, running, choice, size, max_fixable) do
    advice = if choice.advice?, do: Lint.advice(view), else: []
    builtin = for %{name: "builtin", path: path} <- Book.fetch!(view.book).sources, do: path
    loaded = Enum.reject(View.diagnostics(view), &left_out?(&1, builtin))
    found = Enum.uniq(loaded ++ running ++ advice)

    pages =
      found
      |> Enum.filter(&chosen?(&1, choice))
      |> Enum.sort_by(fn one -> Enum.find_index(@severities, &(&1 == one.severity)) end)
      |> named(view)
      |> Enum.chunk_every(size)
      |> Enum.map(&:erlang.term_to_binary/1)

    {fixable, more} = found |> fixable(choice.folder) |> Enum.split(max_fixable)

    %{
      total: length(found),
      severities: Enum.frequencies_by(found, & &1.severity),
      codes: Enum.frequencies_by(found, & &1.code),
      pages: pages,
      fixable: fixable,
      more_fixable: length(more)
    }
  end

  # With the names of their entries. Few books have errors, and none needs no names.
  defp named([], _view), do: []

  defp named(found, view) do
    paths = MapSet.new(found, & &1.path)
    entries = Stream.filter(View.stream(view), &(&1.path in paths))
    names = Map.new(entries, &{&1.path, &1.name})
    Enum.map(found, &{&1, names[&1.path]})
  end

  # Built-in commands that the book does not take are nobody's problem.
  defp left_out?(%{code: :not_selected, path: path}, builtin),
    do: Enum.any?(builtin, &below?(path, Path.expand(&1)))

  defp left_out?(_other, _builtin), do: false

  defp chosen?(one, choice) do
    (choice.severity == nil or one.severity == choice.severity) and
      (choice.code == nil or Atom.to_string(one.code) == choice.code)
  end

  defp fixable(_found, nil), do: []

  defp fixable(found, folder) do
    for(%{fix: fix, path: path} when fix != nil <- found, below?(path, folder), do: path)
    |> Enum.frequencies()
    |> Enum.sort()
  end

  @doc "Whether a path is below a folder."
  @spec below?(Path.t() | nil, Path.t()) :: boolean()
  def below?(path, folder), do: is_binary(path) and String.starts_with?(path, folder <> "/")
end
