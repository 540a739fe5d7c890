defmodule Skillbook.Usage.MostRun do
  @moduledoc false
  # The commands that a profile ran most, for the quick reference of its prompt.
  #
  # The runs of the 30 days before today count, in UTC. So a prompt is the same all day, on every
  # node and after a restart, however often a command runs meanwhile: servers of models keep the
  # beginning of a conversation in a cache, which another byte would make useless. Other profiles
  # and tenants have no part in it. The prompt leaves out the names that the view does not show.

  alias Skillbook.SQL.Tenants
  alias Skillbook.{Book, SQL, View}

  @days 30
  # More than a prompt has, since some may be hidden by now.
  @max_names 50
  # Profiles that are remembered.
  @max_rows 10_000
  # Seconds until a database that failed is asked again.
  @retry 60

  @spec new(atom()) :: :ok
  def new(book) do
    :ets.new(table(book), [:named_table, :public, read_concurrency: true])
    :ok
  end

  @doc "The names, the most frequent first; `[]` for a book that counts nothing."
  @spec names(View.t()) :: [String.t()]
  def names(%View{book: nil}), do: []

  def names(%View{book: name, profile: profile}) do
    case Book.find(name) do
      nil -> []
      %{store: store, usage: usage} when store == nil or usage == false -> []
      book -> names(book, {Tenants.home(profile), profile.id}, second(book))
    end
  end

  defp second(%{test: nil}), do: System.os_time(:second)
  defp second(book), do: book |> Book.now() |> DateTime.to_unix()

  defp names(book, key, second) do
    case :ets.lookup(table(book.name), key) do
      [{_key, from, until, names}] when second >= from and second < until -> names
      _ -> read(book, key, second)
    end
  rescue
    # The book has stopped since.
    ArgumentError -> []
  end

  defp read(book, key, second) do
    today = second |> DateTime.from_unix!() |> DateTime.to_date()

    {names, until} =
      case query(book, key, today) do
        {:ok, %{rows: rows}} -> {List.flatten(rows), midnight(Date.add(today, 1))}
        {:error, _error} -> {[], second + @retry}
      end

    table = table(book.name)
    if :ets.info(table, :size) >= @max_rows, do: :ets.delete_all_objects(table)
    :ets.insert(table, {key, midnight(today), until, names})
    names
  end

  defp midnight(day), do: day |> DateTime.new!(~T[00:00:00]) |> DateTime.to_unix()

  # A bucket is a day or an hour, which begins with its day.
  defp query(book, {tenant, profile}, today) do
    statement = """
    select name from skillbook_usage
    where tenant = $1 and profile = $2 and event = 'run' and name <> ''
      and bucket >= $3 and bucket < $4
    group by name order by sum(count) desc, name limit #{@max_names}
    """

    days = [Date.to_iso8601(Date.add(today, -@days)), Date.to_iso8601(today)]
    SQL.query(Book.sql(book), statement, [tenant, profile] ++ days)
  end

  defp table(book), do: Module.concat(book, MostRun)
end
