defmodule Skillbook.Firing do
  @moduledoc """
  One time at which an entry runs by its schedule.

  ## Fields

    * `:book` - the book
    * `:name` - the name of the entry
    * `:record` - the number that an entry of the store has there, since several of them may have one name; `nil` for one of a
      file. It is for trusted code only
    * `:at` - the time of its schedule, UTC, in whole seconds; together with the name and the record it is unique

  ## Examples

      iex> Skillbook.Firing.new(MyApp.Skills, "workflows.digest", "2026-03-02T08:00:00Z")
      %Skillbook.Firing{book: MyApp.Skills, name: "workflows.digest", record: nil, at: ~U[2026-03-02 08:00:00Z]}
  """

  @type t :: %__MODULE__{
          book: atom(),
          name: String.t(),
          record: pos_integer() | nil,
          at: DateTime.t()
        }

  @enforce_keys [:book, :name, :at]
  defstruct [:book, :name, :record, :at]

  @doc "Makes one of a time or of its text, as a queue that keeps JSON has it."
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
