defmodule Skillbook.Book.Profiles do
  @moduledoc false
  # The profiles of a book: those of its options, and those that a function of the application
  # returns when they are needed. Nothing is kept of the latter, so a book may have any number.
  #
  # A function that fails, is slow or answers something else gives no profile and no rights.

  require Logger

  alias Skillbook.Run.Worker
  alias Skillbook.Support.{Outline, UntilError}
  alias Skillbook.{Book, OptionError, Profile, ProfileError}

  @timeout 5_000

  @typedoc "A function of the application, see the option `:profiles` of `Skillbook`."
  @type fetch :: {module(), atom()} | (String.t() -> term())

  @doc "Reads the option `:profiles`: the listed ones by their ids, and the function."
  @spec read(term(), Profile.roles()) ::
          {:ok, {%{String.t() => Profile.t()}, fetch() | nil}} | {:error, OptionError.t()}
  # A book without profiles has one, which sees all entries without visibility labels. An
  # application that declares profiles has decided who may write, so none is added to them.
  def read([], roles), do: read([[id: "default"]], roles)

  def read(profiles, roles) do
    case profiles |> List.wrap() |> Enum.split_with(&function?/1) do
      {[], listed} ->
        with {:ok, listed} <- list(listed, roles), do: {:ok, {listed, nil}}

      {[function], listed} ->
        with {:ok, listed} <- list(listed, roles), do: {:ok, {listed, function}}

      {[_, second | _], _listed} ->
        invalid("at most one function", second)
    end
  end

  @doc "Whether a value is a function of profiles."
  @spec function?(term()) :: boolean()
  def function?({module, function}), do: is_atom(module) and is_atom(function)
  def function?(value), do: is_function(value, 1)

  defp list(profiles, roles) do
    with {:ok, profiles} <- UntilError.map(profiles, &Profile.new(&1, roles)),
         ids = Enum.map(profiles, & &1.id),
         [] <- ids -- Enum.uniq(ids) do
      {:ok, Map.new(profiles, &{&1.id, &1})}
    else
      [id | _] -> invalid("profiles with different ids", id)
      error -> error
    end
  end

  defp invalid(expected, value) do
    problem = {:invalid, expected, value}
    {:error, %OptionError{subject: "a book", option: :profiles, problem: problem}}
  end

  @doc "Whether a profile is listed, or cannot exist without being listed."
  @spec listed?(Book.t(), String.t() | nil) :: boolean()
  def listed?(%Book{fetch_profile: nil}, _id), do: true
  def listed?(%Book{profiles: profiles}, id), do: is_nil(id) or is_map_key(profiles, id)

  @doc "Returns the profile of an id; `:error` if there is none."
  @spec fetch(Book.t(), String.t() | term()) ::
          {:ok, Profile.t()} | :error | {:error, ProfileError.t()}
  def fetch(%Book{profiles: profiles}, id) when is_map_key(profiles, id),
    do: Map.fetch(profiles, id)

  def fetch(%Book{fetch_profile: nil}, _id), do: :error

  def fetch(book, id) when is_binary(id) and id != "" do
    if String.valid?(id), do: ask(book, id), else: :error
  end

  def fetch(_book, _id), do: :error

  @doc "Describes the profiles in an error; those of the application are not named."
  @spec names(Book.t()) :: String.t()
  def names(%Book{fetch_profile: nil, profiles: profiles}),
    do: "one of the profiles #{profiles |> Map.keys() |> Enum.sort() |> Enum.join(", ")}"

  def names(_book), do: "a profile of the book"

  @doc "Returns the profile of an id, or `nil`. A failure of the function is logged."
  @spec find(Book.t(), String.t() | nil) :: Profile.t() | nil
  def find(book, id) do
    case fetch(book, id) do
      {:ok, profile} ->
        profile

      :error ->
        nil

      {:error, error} ->
        Logger.error(fn -> Exception.message(error) end, book: book.name, profile: id)
        nil
    end
  end

  # In a process of its own, so that it cannot take longer or crash its caller.
  defp ask(book, id) do
    worker = Worker.start(book.name, [book: book.name], fn -> call(book.fetch_profile, id) end)

    case Worker.run(worker, @timeout) do
      {:ok, answer} -> read_answer(answer, book, id)
      {:crash, reason} -> failed(book, id, :crash, reason)
      :timeout -> failed(book, id, :timeout, @timeout)
    end
  end

  defp call({module, function}, id), do: apply(module, function, [id])
  defp call(function, id), do: function.(id)

  defp read_answer(none, _book, _id) when none in [nil, :error], do: :error

  defp read_answer({:error, error}, book, id) when is_exception(error),
    do: failed(book, id, :error, error)

  defp read_answer({:ok, answer}, book, id) do
    case answer |> with_id(id) |> Profile.new(book.roles) do
      {:ok, %Profile{id: ^id} = profile} ->
        {:ok, profile}

      {:ok, %Profile{id: other}} ->
        failed(book, id, :answer, "a profile with the id #{inspect(other)}")

      {:error, error} ->
        failed(book, id, :error, error)
    end
  end

  defp read_answer(other, book, id), do: failed(book, id, :answer, Outline.text(other))

  defp with_id(%Profile{} = profile, _id), do: profile
  defp with_id(%{} = options, id) when not is_struct(options), do: Map.put_new(options, :id, id)

  defp with_id(options, id),
    do: if(Keyword.keyword?(options), do: Keyword.put_new(options, :id, id), else: options)

  defp failed(book, id, kind, reason),
    do: {:error, %ProfileError{book: book.name, id: id, kind: kind, reason: reason}}
end
