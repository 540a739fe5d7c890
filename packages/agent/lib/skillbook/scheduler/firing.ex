defmodule Skillbook.Firing do
  @moduledoc """
  One run of an entry on its schedule, identified by the entry and the time.

  ## Fields

    * `:book` - the name of the book
    * `:name` - the name of the entry
    * `:record` - the number of an entry of the store, where several may share a name; `nil` for
      an entry of a file. For trusted code only
    * `:at` - the time of the schedule, UTC, in whole seconds. It is unique together with name and
      record

  ## Examples

      iex> firing = Skillbook.Firing.new(MyApp.Skills, "mail.digest", "2026-03-02T08:00:00Z")
      iex> {firing.name, firing.at}
      {"mail.digest", ~U[2026-03-02 08:00:00Z]}
  """

  @type t :: %__MODULE__{
          book: atom(),
          name: String.t(),
          record: pos_integer() | nil,
          at: DateTime.t()
        }

  @enforce_keys [:book, :name, :at]
  defstruct [:book, :name, :record, :at]

  @doc """
  Builds a firing from its stored parts.

  The time is a `DateTime` or its ISO 8601 text, as in a queue that stores JSON. Invalid text
  raises `ArgumentError`.
  """
  @spec new(atom(), String.t(), DateTime.t() | String.t(), pos_integer() | nil) :: t()
  def new(book, name, at, record \\ nil)

  def new(book, name, %DateTime{} = at, record)
      when is_atom(book) and is_binary(name) and (is_nil(record) or is_integer(record)),
      do: %__MODULE__{book: book, name: name, record: record, at: DateTime.truncate(at, :second)}

  def new(book, name, at, record) when is_binary(at) do
    case DateTime.from_iso8601(at) do
      {:ok, at, _offset} ->
        new(book, name, at, record)

      {:error, _} ->
        raise ArgumentError,
              "expected the time of a firing such as 2026-03-02T08:00:00Z, got: #{inspect(at)}"
    end
  end
end
